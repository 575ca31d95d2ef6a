#include "weft/measure/memory_forecast.h"

#include <algorithm>
#include <numeric>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/derive/machines.h"
#include "weft/derive/optimizer_offload.h"
#include "weft/derive/pipeline.h"
#include "weft/measure/narrow_formats.h"
#include "weft/plan/nominal_costs.h"
#include "weft/plan/short_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/offload_text.h"
#include "weft/train/engine.h"
#include "weft/train/snapshot_prediction.h"

namespace weft::measure {
namespace {

// Ranks of a GPU run share machines as its GPUs do, where nobody says how.
void share_machines(config::Config& config) {
  if (!derive::is_on_gpu(config) || config.runtime.ranks_per_node) return;
  const std::int64_t world = derive::layout_of(config).world;
  const std::int64_t ranks =
      std::min<std::int64_t>(world, derive::gpu_facts(config.hardware).gpus_per_node);
  if (ranks > 0 && world % ranks == 0) config.runtime.ranks_per_node = ranks;
}

// As this process can take it: as it is, else as one rank of a pretended world.
rules::Verdict countable(config::Config config) {
  rules::Verdict verdict = rules::judge(config);
  if (verdict.judged) return verdict;
  config.runtime.backend = config::CommBackend::Fake;
  config.checkpoint = {};
  return rules::judge(config);
}

// Of the run that was asked for: one that is counted as a pretended world has no checkpoints.
void add_snapshots(const config::Config& asked,
                   const rules::JudgedConfig& counted,
                   MemoryForecast& forecast) {
  const bool is_left = derive::optimizer_offload(counted).is_on();  // rule W116
  if (!derive::saves_beside(asked) || is_left) return;
  std::vector<int> ranks(base::at(forecast.layout.world));
  std::iota(ranks.begin(), ranks.end(), 0);
  forecast.snapshots = train::predict_snapshots(counted, ranks);
  for (train::PredictedMemory& stage : forecast.stages) {
    stage.snapshot_bytes = forecast.snapshots[base::at(stage.rank)];
  }
}

// Of a training step at nominal costs.
double nominal_seconds(const config::Config& config, const std::vector<schedule::RankPlan>& plans) {
  const grid::Grid grid(derive::layout_of(config));
  return plan::simulate_nominal(config, grid, plans, plan::rates_of(config.hardware))
      .step_seconds();
}

// Of each micro-batch that a step of `run` was shortened by: its pipeline is full then, and what a
// step does once, at its end, is not in it.
double seconds_of_another(const config::Config& config, std::int64_t run, double seconds) {
  const std::int64_t group = derive::micro_batch_group(config.model);
  const rules::Verdict longer = countable(plan::with_micro_batches(config, run + group));
  CHECK(longer.judged.has_value(), "a step of {} micro-batches more is refused", group);
  const double more = nominal_seconds(longer.config, train::verified_plans(*longer.judged));
  return (more - seconds) / base::number(group);
}

void tell_why_not(const rules::Verdict& verdict, std::vector<std::string>& reasons) {
  for (const config::Finding& error : verdict.errors) reasons.push_back(error.message);
  for (const rules::Missing& missing : verdict.missing) reasons.push_back(missing.message);
}

}  // namespace

std::size_t MemoryForecast::largest_stage() const {
  const auto most = std::ranges::max_element(stages, {}, &train::PredictedMemory::peak_total_bytes);
  return static_cast<std::size_t>(most - stages.begin());
}

std::size_t MemoryForecast::host_bytes() const {
  std::size_t most = 0;
  for (const train::PredictedMemory& stage : stages) {
    most = std::max(
        most,
        stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)] + stage.snapshot_bytes);
  }
  return most;
}

std::int64_t dry_layers(const config::Config& asked) {
  const config::Config config = rules::without_missing(asked);
  return config.model.num_layers *
         plan::fewest_micro_batches(config.model, plan::micro_batches_of(config));
}

MemoryForecast forecast_memory(const config::Config& asked, Priced priced) {
  MemoryForecast forecast;
  config::Config config = rules::without_missing(asked);
  for (const rules::Missing& missing : rules::missing_parts(asked)) {
    if (missing.part != rules::kNoGpu) forecast.left_out.push_back(missing.message);
  }
  share_machines(config);
  forecast.micro_batches = plan::micro_batches_of(config);
  forecast.run = plan::fewest_micro_batches(config.model, forecast.micro_batches);
  const rules::Verdict verdict = countable(plan::with_micro_batches(config, forecast.run));
  if (!verdict.judged) {
    tell_why_not(verdict, forecast.left_out);
    return forecast;
  }
  const std::vector<schedule::RankPlan> plans = train::verified_plans(*verdict.judged);
  forecast.stages =
      train::predict_memory(*verdict.judged, plans, forecast.micro_batches - forecast.run);
  take_narrow_formats(asked, verdict.config, forecast);
  forecast.layout = derive::layout_of(*verdict.judged);
  add_snapshots(config, *verdict.judged, forecast);
  forecast.offload = schedule::offload_text(verdict.config);
  if (priced == Priced::No) return forecast;
  forecast.step_seconds = nominal_seconds(verdict.config, plans);
  const std::int64_t left = forecast.micro_batches - forecast.run;
  if (left == 0) return forecast;
  forecast.step_seconds +=
      base::number(left) * seconds_of_another(config, forecast.run, forecast.step_seconds);
  return forecast;
}

}  // namespace weft::measure
