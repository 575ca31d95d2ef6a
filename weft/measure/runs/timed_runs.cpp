#include "weft/measure/runs/timed_runs.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/measure/runs/perf_run.h"
#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::measure {

std::vector<double> untraced_steps(const TimedRunRequest& request) {
  config::Config config = perf_config(request.config, request.steps);
  config.train.train_iters = request.steps;
  config.train.train_samples.reset();
  config.runtime.trace = false;
  config.runtime.run_dir = request.folder.string();
  std::vector<double> ms;
  const auto note = [&](const train::StepRecord& record) {
    if (record.iteration > request.warm_up) ms.push_back(record.elapsed_ms);
    if (request.progress) request.progress(record.iteration);
  };
  const train::TrainResult result = train::train({.config = rules::validate(config).judged.value(),
                                                  .name = {},
                                                  .stop = request.stop,
                                                  .start = [](const train::RunStart&) {},
                                                  .log = [](const std::string&) {},
                                                  .progress = note,
                                                  .process = {},
                                                  .overwrite = base::Overwrite::Yes});
  if (!result.failures.empty()) throw base::SystemError(result.failures.front());
  return ms;
}

void TimedRuns::add(const TimedRunRequest& request) {
  PerfRun run = run_perf(
      {.config = rules::validate(perf_config(request.config, request.steps)).judged.value(),
       .steps = request.steps,
       .window = {.start = request.warm_up},
       .run_dir = request.folder,
       .stop = request.stop,
       .progress = [&](const train::StepRecord& record) { request.progress(record.iteration); }});
  if (run.interrupted || !run.window) return;
  for (std::int64_t i = run.window->first; i < run.window->end; ++i) {
    ms_.push_back(run.step_ms[base::at(i)]);
  }
  for (trace::Timeline& timeline : run.timelines) {
    for (trace::Span& span : timeline.spans) span.run += traced_;
    const auto known = std::ranges::find(timelines_, timeline.rank, &trace::Timeline::rank);
    if (known == timelines_.end()) {
      timelines_.push_back(std::move(timeline));
    } else {
      std::ranges::move(timeline.spans, std::back_inserter(known->spans));
    }
  }
  traced_ += static_cast<int>(kTracedSteps);
}

double TimedRuns::median_ms() const { return base::median(ms_); }

}  // namespace weft::measure
