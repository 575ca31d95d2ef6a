#include "weft/measure/calibration_run.h"

#include "weft/base/casts.h"
#include "weft/base/cores.h"
#include "weft/base/text.h"
#include "weft/measure/perf_run.h"
#include "weft/measure/timed_runs.h"
#include "weft/rules/validate.h"

namespace weft::measure {

std::optional<config::Config> overlapped(const config::Config& config, std::int64_t steps) {
  if (config.comm_overlap.overlap_moe_expert_parallel_comm) return std::nullopt;
  config::Config other = config;
  other.comm_overlap.overlap_moe_expert_parallel_comm = true;
  other.comm_overlap.delay_wgrad_compute = true;
  if (!rules::judge(perf_config(other, steps)).runs()) return std::nullopt;
  return other;
}

namespace {

CalibrationResult calibrated(const config::Config& config,
                             const TimedRuns& plain,
                             const std::optional<config::Config>& other,
                             const TimedRuns& beside) {
  const config::Config judged = rules::judge(config).config;
  const bool is_cpu = judged.runtime.device != config::DeviceKind::Cuda;
  const double cores = is_cpu ? base::number(std::ssize(base::usable_cores())) : 0;
  const double seconds = plain.median_ms() * 1e-3;
  const plan::CalibrationRun traced{.config = judged,
                                    .timelines = plain.timelines(),
                                    .seconds = seconds};
  if (!other) {
    return {.calibration = plan::calibrate(traced, std::nullopt, cores),
            .step_seconds = seconds,
            .overlapped_seconds = std::nullopt};
  }
  const double overlapped_seconds = beside.median_ms() * 1e-3;
  const config::Config judged_other = rules::judge(*other).config;
  const plan::CalibrationRun timed{.config = judged_other,
                                   .timelines = beside.timelines(),
                                   .seconds = overlapped_seconds};
  return {.calibration = plan::calibrate(traced, timed, cores),
          .step_seconds = seconds,
          .overlapped_seconds = overlapped_seconds};
}

// Of what both have seen, the newer one counts; but rates and nodes of ranks that had a core each.
CalibrationResult added_to(const plan::Calibration& known,
                           const config::Config& judged,
                           const std::vector<trace::Timeline>& timelines,
                           CalibrationResult found) {
  plan::Calibration& newer = found.calibration;
  if (!plan::shares_cores(judged, known)) {
    newer.rates.turn = known.rates.turn;
    for (const auto& [kind, factor] : known.nodes) newer.nodes.try_emplace(kind, factor);
    return found;
  }
  plan::Calibration both = known;
  for (const auto& [kind, factor] : newer.nodes) both.nodes.try_emplace(kind, factor);
  both.rates.turn =
      plan::fit_turn({.config = judged, .timelines = timelines, .seconds = found.step_seconds},
                     both);
  found.calibration = std::move(both);
  return found;
}

}  // namespace

std::optional<CalibrationResult> run_calibration(const CalibrationRequest& request) {
  const config::Config judged = rules::judge(request.config).config;
  const bool shares = request.known && plan::shares_cores(judged, *request.known);
  std::optional<config::Config> other;
  if (!shares) other = overlapped(request.config, request.steps);
  TimedRuns plain, beside;
  int runs = 0;
  const auto add = [&](TimedRuns& timed, const config::Config& config, const char* what) {
    timed.add({.config = config,
               .steps = request.steps,
               .warm_up = request.steps / 2,
               .folder = request.folder / base::text("calibration{}", ++runs),
               .stop = request.stop,
               .progress = [&](std::int64_t step) { request.progress(what, step); }});
    return request.stop == nullptr || !request.stop->load();
  };
  for (int round = 0; round < request.rounds; ++round) {
    if (!add(plain, request.config, "calibration")) return std::nullopt;
    if (other && !add(beside, *other, "calibration, overlapped")) return std::nullopt;
  }
  CalibrationResult found = calibrated(request.config, plain, other, beside);
  return request.known ? added_to(*request.known, judged, plain.timelines(), std::move(found))
                       : found;
}

}  // namespace weft::measure
