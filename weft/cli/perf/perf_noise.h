// When a difference of step times means something: not while the spread of the steps explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/measure/runs/perf_run.h"

namespace weft::cli {

// Times the standard error of the difference of two means that is still noise. Student's 95 % for
// three steps against three is 2.8 of them, and steps of one run are less than independent.
inline constexpr double kNoiseErrors = 3;

// Steps of one run around their mean.
struct StepSpread {
  double deviation_ms = 0;
  std::int64_t steps = 0;
};

// The largest difference of two means that is noise; nullopt: one of them has a single step.
std::optional<double> noise_ms(const StepSpread& one, const StepSpread& other);

enum class RunVerdict { Faster, Slower, Noise };
std::string_view word(RunVerdict verdict);

// One run beside another.
struct RunDifference {
  double ms = 0;                        // of a step, more than the other's
  std::optional<double> noise_ms = {};  // nullopt: a single step has no spread

  RunVerdict verdict() const;
};

// nullopt: one of them has no timed step.
std::optional<RunDifference> difference_of(const measure::PerfRun& run,
                                           const measure::PerfRun& from);

// "within the noise: +12.81 ms, of which 20.10 ms are noise"
std::string to_text(const RunDifference& difference);

}  // namespace weft::cli
