#include "weft/cli/perf/perf_noise.h"

#include <cmath>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

// Squared standard error of the mean.
double squared_error_of(const StepSpread& spread) {
  return spread.deviation_ms * spread.deviation_ms / static_cast<double>(spread.steps);
}

StepSpread spread_of(const measure::PerfRun& run) {
  return {.deviation_ms = run.steady_ms->deviation, .steps = run.window->steps()};
}

}  // namespace

std::optional<double> noise_ms(const StepSpread& one, const StepSpread& other) {
  if (one.steps < 2 || other.steps < 2) return std::nullopt;
  return kNoiseErrors * std::sqrt(squared_error_of(one) + squared_error_of(other));
}

std::string_view word(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::Faster:
      return "faster";
    case RunVerdict::Slower:
      return "slower";
    case RunVerdict::Noise:
      return "within the noise";
  }
  UNREACHABLE("verdict {}", static_cast<int>(verdict));
}

RunVerdict RunDifference::verdict() const {
  if (!noise_ms || std::abs(ms) <= *noise_ms) return RunVerdict::Noise;
  return ms < 0 ? RunVerdict::Faster : RunVerdict::Slower;
}

std::optional<RunDifference> difference_of(const measure::PerfRun& run,
                                           const measure::PerfRun& from) {
  if (!run.steady_ms || !from.steady_ms) return std::nullopt;
  return RunDifference{.ms = run.steady_ms->mean - from.steady_ms->mean,
                       .noise_ms = noise_ms(spread_of(run), spread_of(from))};
}

std::string to_text(const RunDifference& difference) {
  const std::string noise =
      difference.noise_ms
          ? base::text("differences up to {:.2f} ms are noise", *difference.noise_ms)
          : std::string("a single step has no spread: time more steps");
  return base::text("{}: {:+.2f} ms ({})", word(difference.verdict()), difference.ms, noise);
}

}  // namespace weft::cli
