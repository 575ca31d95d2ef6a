// Which steps of a run are timed, and what they say: the first ones warm up and are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weft::measure {

struct WindowOptions {
  std::optional<std::int64_t> start;  // step, counted from 0
  std::optional<std::int64_t> end;    // the step after the last
  double skip_first = 0.7;            // share of the steps left out where `start` is not given
};

// Steps [first, end), counted from 0.
struct Window {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t steps() const { return end - first; }
  bool operator==(const Window&) const = default;
};

// Without a start: the first `skip_first` of the steps are left out, and at least 2, but 3 steps
// stay where there are as many, and the very first step stays only where it is alone. ConfigError
// where the options leave no step.
Window timing_window(std::int64_t steps, const WindowOptions& options);

// The rule in words, for results.
std::string describe(const WindowOptions& options);

struct Steady {
  double mean = 0;
  double deviation = 0;  // standard deviation of the sample; 0 of one step
  double least = 0;
  double most = 0;
};

// Of the times inside the window; there is at least one.
Steady steady_state(std::span<const double> times, const Window& window);

}  // namespace weft::measure
