// How long a run still takes, by its recent steps.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace weft::cli {

class TimeLeft {
 public:
  // A step is over, `seconds` after some moment in the past. What lies between two steps counts:
  // evaluations and saves too.
  void step_over(double seconds);

  // Nothing before the second step: the first one warms up.
  std::optional<double> seconds_for(std::int64_t steps) const;

 private:
  std::deque<double> ends_;  // of recent steps
};

// "12 s", "4 min 10 s", "3 h 20 min", "12 d 5 h".
std::string duration_text(double seconds);

}  // namespace weft::cli
