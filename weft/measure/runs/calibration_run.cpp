#include "weft/measure/runs/calibration_run.h"

#include "weft/base/casts.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/measure/device/core_turn.h"
#include "weft/measure/runs/perf_run.h"
#include "weft/measure/runs/timed_runs.h"
#include "weft/plan/hardware/calibration_fit.h"
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

plan::HostCores measured_cores() {
  return {.count = base::number(std::ssize(base::usable_cores())),
          .turn_seconds = core_turn_seconds()};
}

CalibrationResult calibrated(const config::Config& config,
                             const TimedRuns& plain,
                             const std::optional<config::Config>& other,
                             const TimedRuns& beside) {
  const config::Config judged = rules::judge(config).config;
  const bool is_cpu = judged.runtime.device != config::DeviceKind::Cuda;
  const plan::HostCores cores = is_cpu ? measured_cores() : plan::HostCores{};
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

}  // namespace

std::optional<CalibrationResult> run_calibration(const CalibrationRequest& request) {
  const std::optional<config::Config> other = overlapped(request.config, request.steps);
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
  return calibrated(request.config, plain, other, beside);
}

}  // namespace weft::measure
