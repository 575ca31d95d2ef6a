// Window of timed steps and their statistics: the first steps warm up and are excluded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weft::measure {

struct WindowOptions {
  std::optional<std::int64_t> start;  // first step, counted from 0
  std::optional<std::int64_t> end;    // step after the last
  double skip_first = 0.7;            // share of the steps excluded if `start` is not given
};

// Steps [first, end), counted from 0.
struct Window {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t steps() const { return end - first; }
  bool operator==(const Window&) const = default;
};

// Default without a start: excludes the first `skip_first` of the steps and at least 2. It leaves
// at least 3 steps if the run has them, and includes step 0 only in a run of one step. ConfigError
// if the options leave no step.
Window timing_window(std::int64_t steps, const WindowOptions& options);

// Description of the rule, for results.
std::string describe(const WindowOptions& options);

struct Steady {
  double mean = 0;
  double deviation = 0;  // standard deviation of the sample; 0 for one step
  double least = 0;
  double most = 0;
};

// Statistics of the times in the window, which must not be empty.
Steady steady_state(std::span<const double> times, const Window& window);

}  // namespace weft::measure
