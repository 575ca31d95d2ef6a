// Significance of a difference of step times: within the spread of the steps it is noise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/measure/runs/perf_run.h"

namespace weft::cli {

// Standard errors of a difference of two means that are still noise. Student's 95 % for three
// against three steps is 2.8, and steps of one run are not fully independent.
inline constexpr double kNoiseErrors = 3;

// Spread of one run's steps around their mean.
struct StepSpread {
  double deviation_ms = 0;
  std::int64_t steps = 0;
};

// Largest difference of two means that is noise; nullopt: one of them has a single step.
std::optional<double> noise_ms(const StepSpread& one, const StepSpread& other);

enum class RunVerdict { Faster, Slower, Noise };
std::string_view word(RunVerdict verdict);

// Difference of two runs.
struct RunDifference {
  double ms = 0;                        // additional time per step over the other run
  std::optional<double> noise_ms = {};  // nullopt: a single step has no spread

  RunVerdict verdict() const;
};

// nullopt: one of them has no timed step.
std::optional<RunDifference> difference_of(const measure::PerfRun& run,
                                           const measure::PerfRun& from);

// "within the noise: +12.81 ms, of which 20.10 ms are noise"
std::string to_text(const RunDifference& difference);

}  // namespace weft::cli
