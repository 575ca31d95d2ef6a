// Remaining time of a run, by its recent steps.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace weft::cli {

class TimeLeft {
 public:
  // Records the end of a step, `seconds` after a fixed moment. Time between steps counts, including
  // evaluations and saves.
  void step_over(double seconds);

  // nullopt before the second step: the first one warms up.
  std::optional<double> seconds_for(std::int64_t steps) const;

 private:
  std::deque<double> ends_;  // recent steps
};

// "12 s", "4 min 10 s", "3 h 20 min", "12 d 5 h".
std::string duration_text(double seconds);

}  // namespace weft::cli
