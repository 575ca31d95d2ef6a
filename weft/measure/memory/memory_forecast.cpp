#include "weft/measure/memory/memory_forecast.h"

#include <algorithm>
#include <numeric>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/derive/machines.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/derive/pipeline.h"
#include "weft/measure/bench/narrow_formats.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/short_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/text/offload_text.h"
#include "weft/train/engine.h"
#include "weft/train/guard/memory_prediction.h"

namespace weft::measure {
namespace {

// Distributes the ranks of a GPU run over machines as its GPU type does, unless set.
void share_machines(config::Config& config) {
  if (!derive::is_on_gpu(config) || config.runtime.ranks_per_node) return;
  const std::int64_t world = derive::layout_of(config).world;
  const std::int64_t ranks =
      std::min<std::int64_t>(world, derive::gpu_facts(config.hardware).gpus_per_node);
  if (ranks > 0 && world % ranks == 0) config.runtime.ranks_per_node = ranks;
}

// Config that this process can count: unchanged, or as one rank of a pretended world.
rules::Verdict countable(config::Config config) {
  rules::Verdict verdict = rules::judge(config);
  if (verdict.judged) return verdict;
  config.runtime.backend = config::CommBackend::Fake;
  config.checkpoint = {};
  return rules::judge(config);
}

// Snapshots of the run as written: a pretended world has no checkpoints.
std::vector<std::size_t> snapshots(const config::Config& asked,
                                   const rules::JudgedConfig& counted) {
  const bool is_left = derive::optimizer_offload(counted).is_on();  // rule W116
  if (!derive::saves_beside(asked) || is_left) return {};
  std::vector<int> ranks(base::at(derive::layout_of(counted).world));
  std::iota(ranks.begin(), ranks.end(), 0);
  return train::predict_snapshots(counted, ranks);
}

// Run as counted, with the fewest micro-batches of the same order.
struct ShortRun {
  config::Config whole;  // without missing parts
  std::int64_t micro_batches = 0, run = 0;
  rules::Verdict verdict;
};

ShortRun short_run(const config::Config& asked) {
  ShortRun run{.whole = rules::without_missing(asked)};
  share_machines(run.whole);
  run.micro_batches = plan::micro_batches_of(run.whole);
  run.run = plan::fewest_micro_batches(run.whole.model, run.micro_batches);
  run.verdict = countable(plan::with_micro_batches(run.whole, run.run));
  return run;
}

// Time of a training step at nominal costs.
double nominal_seconds(const config::Config& config, const std::vector<schedule::RankPlan>& plans) {
  const grid::Grid grid(derive::layout_of(config));
  return plan::simulate_nominal(config, grid, plans, plan::rates_of(config.hardware))
      .step_seconds();
}

// Additional time per micro-batch beyond `run`: the pipeline is full then, and the end of the step
// does not repeat.
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

std::vector<std::string> left_out_of(const config::Config& asked) {
  std::vector<std::string> parts;
  for (const rules::Missing& missing : rules::missing_parts(asked)) {
    if (missing.part != rules::kNoGpu) parts.push_back(missing.message);
  }
  return parts;
}

std::vector<std::size_t> snapshots_of(const config::Config& asked) {
  if (!derive::saves_beside(asked)) return {};
  const ShortRun run = short_run(asked);
  return run.verdict.judged ? snapshots(run.whole, *run.verdict.judged)
                            : std::vector<std::size_t>{};
}

std::vector<train::PredictedMemory> count_ranks(const config::Config& asked,
                                                const std::vector<int>& pp_ranks) {
  const ShortRun run = short_run(asked);
  if (!run.verdict.judged) return {};
  const rules::JudgedConfig& judged = *run.verdict.judged;
  const grid::Grid grid(derive::layout_of(judged));
  const std::vector<int> ranks = grid.group_of(grid::GroupKind::Pp, 0);
  const std::vector<schedule::RankPlan> plans = schedule::plan_ranks(judged, grid, pp_ranks);
  MemoryForecast forecast;
  for (std::size_t i = 0; i < pp_ranks.size(); ++i) {
    forecast.stages.push_back(train::predict_memory(judged,
                                                    ranks[base::at(pp_ranks[i])],
                                                    plans[i],
                                                    run.micro_batches - run.run));
  }
  take_narrow_formats(asked, run.verdict.config, pp_ranks, forecast);
  return forecast.stages;
}

MemoryForecast forecast_memory(const config::Config& asked, Priced priced) {
  const ShortRun run = short_run(asked);
  MemoryForecast forecast{.micro_batches = run.micro_batches,
                          .run = run.run,
                          .left_out = left_out_of(asked)};
  const rules::Verdict& verdict = run.verdict;
  if (!verdict.judged) {
    tell_why_not(verdict, forecast.left_out);
    return forecast;
  }
  const std::vector<schedule::RankPlan> plans = train::verified_plans(*verdict.judged);
  forecast.stages =
      train::predict_memory(*verdict.judged, plans, forecast.micro_batches - forecast.run);
  std::vector<int> pp_ranks(forecast.stages.size());
  std::iota(pp_ranks.begin(), pp_ranks.end(), 0);
  take_narrow_formats(asked, verdict.config, pp_ranks, forecast);
  forecast.layout = derive::layout_of(*verdict.judged);
  forecast.snapshots = snapshots(run.whole, *verdict.judged);
  for (train::PredictedMemory& stage : forecast.stages) {
    if (!forecast.snapshots.empty())
      stage.snapshot_bytes = forecast.snapshots[base::at(stage.rank)];
  }
  forecast.offload = schedule::offload_text(verdict.config);
  if (priced == Priced::No) return forecast;
  forecast.step_seconds = nominal_seconds(verdict.config, plans);
  const std::int64_t left = forecast.micro_batches - forecast.run;
  if (left == 0) return forecast;
  forecast.step_seconds +=
      base::number(left) * seconds_of_another(run.whole, forecast.run, forecast.step_seconds);
  return forecast;
}

}  // namespace weft::measure
