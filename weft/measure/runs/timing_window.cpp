#include "weft/measure/runs/timing_window.h"

#include <algorithm>
#include <cmath>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::measure {

namespace {

using base::text;

constexpr std::int64_t kLeastSkipped = 2;
constexpr std::int64_t kLeastTimed = 3;

std::int64_t default_start(std::int64_t end, double skip_first) {
  // Guards against 0.7 * 10 rounding down to 6.
  const double skipped = std::floor(static_cast<double>(end) * skip_first + 1e-9);
  const std::int64_t wanted = std::max(kLeastSkipped, static_cast<std::int64_t>(skipped));
  const std::int64_t most = std::max<std::int64_t>(1, end - kLeastTimed);
  return std::min({wanted, most, end - 1});
}

}  // namespace

Window timing_window(std::int64_t steps, const WindowOptions& options) {
  CHECK(steps >= 1, "a window over {} steps", steps);
  if (!(options.skip_first >= 0 && options.skip_first < 1)) {
    throw base::ConfigError(
        text("--skip_first_percent_time {}: use a share from 0 to below 1", options.skip_first));
  }
  const std::int64_t end = options.end.value_or(steps);
  if (end < 1 || end > steps) {
    throw base::ConfigError(
        text("--eval_time_end_step {} of {} steps: use a number from 1 to {}", end, steps, steps));
  }
  const std::int64_t first = options.start.value_or(default_start(end, options.skip_first));
  if (first < 0 || first >= end) {
    throw base::ConfigError(
        text("--eval_time_start_step {} leaves no step before {}: use a number from 0 to {}",
             first,
             end,
             end - 1));
  }
  return {.first = first, .end = end};
}

std::string describe(const WindowOptions& options) {
  const std::string end =
      options.end ? text("before step {}", *options.end) : std::string("to the last");
  if (options.start) return text("from step {} {}, counted from 0", *options.start, end);
  return text(
      "{}, without the first {:.0f} % of them and at least {}, but at least {} where there are as "
      "many",
      options.end ? text("the steps before step {}", *options.end) : "all steps",
      options.skip_first * 100,
      kLeastSkipped,
      kLeastTimed);
}

Steady steady_state(std::span<const double> times, const Window& window) {
  CHECK(window.steps() >= 1 && window.end <= static_cast<std::int64_t>(times.size()),
        "a window [{}, {}) over {} steps",
        window.first,
        window.end,
        times.size());
  const auto inside = times.subspan(static_cast<std::size_t>(window.first),
                                    static_cast<std::size_t>(window.steps()));
  const auto count = static_cast<double>(inside.size());
  Steady steady{.least = std::ranges::min(inside), .most = std::ranges::max(inside)};
  for (const double time : inside) steady.mean += time / count;
  double squares = 0;
  for (const double time : inside) squares += (time - steady.mean) * (time - steady.mean);
  if (inside.size() > 1) steady.deviation = std::sqrt(squares / (count - 1));
  return steady;
}

}  // namespace weft::measure
