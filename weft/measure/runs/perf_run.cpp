#include "weft/measure/runs/perf_run.h"

#include <numeric>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::measure {

using namespace train;
namespace {

// Window of a possibly interrupted run: the same window, cut at the last step.
std::optional<Window> window_of(const PerfRequest& request, std::int64_t done) {
  Window window = timing_window(request.steps, request.window);
  window.end = std::min(window.end, done);
  if (window.steps() < 1) return std::nullopt;
  return window;
}

void take_times(const PerfRequest& request, PerfRun& run) {
  run.window = window_of(request, static_cast<std::int64_t>(run.step_ms.size()));
  if (!run.window) return;
  run.steady_ms = steady_state(run.step_ms, *run.window);
  run.tokens_per_second =
      static_cast<double>(derive::tokens_per_step(request.config)) / (run.steady_ms->mean / 1e3);
  run.flops_per_second = derive::flops_per_token(request.config->model) * run.tokens_per_second;
}

}  // namespace

std::size_t PerfRun::total_peak_bytes() const {
  return std::accumulate(peak_bytes.begin(), peak_bytes.end(), std::size_t{0});
}

config::Config perf_config(config::Config config, std::int64_t steps) {
  config.train.train_iters = steps + kTracedSteps;
  config.train.train_samples.reset();
  config.train.eval_interval = 0;
  config.runtime.trace = true;
  config.runtime.trace_steps = kTracedSteps;
  config.runtime.run_dir.clear();
  config.checkpoint.save_hf.clear();
  return config;
}

PerfRun run_perf(const PerfRequest& request) {
  CHECK(request.config->train.train_iters == request.steps + kTracedSteps,
        "{} steps for a run of {} and the traced ones",
        request.config->train.train_iters,
        request.steps);
  PerfRun run;
  config::Config in_folder = request.config;
  in_folder.runtime.run_dir = request.run_dir.string();
  const rules::JudgedConfig config = rules::validate(in_folder).judged.value();
  const auto note = [&](const StepRecord& record) {
    if (record.iteration > request.steps) return;
    run.step_ms.push_back(record.elapsed_ms);
    run.losses.push_back(record.loss);
    run.not_finite = record.not_finite;
    run.repeated = record.repeated.value_or(0);
    request.progress(record);
  };
  TrainResult result = train::train({.config = config,
                                     .name = {},
                                     .stop = request.stop,
                                     .start = [](const train::RunStart&) {},
                                     .log = [](const std::string&) {},
                                     .progress = note,
                                     .process = {},
                                     .overwrite = base::Overwrite::Yes});
  if (!result.failures.empty()) throw base::SystemError(result.failures.front());
  run.interrupted = result.steps < config->train.train_iters;
  run.peak_bytes = result.peak_bytes;
  if (!run.interrupted) {
    run.exposure = result.exposure;
    run.timelines = std::move(result.timelines);
  }
  take_times(request, run);
  return run;
}

}  // namespace weft::measure
