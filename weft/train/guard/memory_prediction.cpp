#include "weft/train/guard/memory_prediction.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/parallel.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/train/launch.h"
#include "weft/train/log/model_statistics.h"
#include "weft/train/saves/state_list.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

void run_dry(Engine& engine, std::int64_t left_out, MemoryLog& log) {
  engine.program().watch([&log](const schedule::Node& node) { log.issue(node); });
  const Batch batch = blank_batch(engine.share(), engine.config().model.seq_length);
  log.begin(Phase::Training);
  train_step(engine, {.batch = batch, .left_out = left_out}, exec::Tracing::Off);
  model_statistics(engine);
  const config::Config& config = engine.config();
  if (config.train.eval_iters == 0) return;
  if (config.train.eval_interval <= 0 && !data::has_test_split(config.dataset)) return;
  log.begin(Phase::Evaluation);
  evaluate_step(engine, {.batch = batch, .left_out = left_out});
}

}  // namespace

PredictedMemory predict_memory(const rules::JudgedConfig& config,
                               int rank,
                               const schedule::RankPlan& plan,
                               std::int64_t left_out) {
  PredictedMemory predicted{.rank = rank};
  MemoryLog log;
  const comm::LaunchOptions world{.world = static_cast<int>(derive::layout_of(config).world),
                                  .rank = rank};
  comm::run_fake(world, [&](comm::Endpoint& endpoint) {
    Engine engine(config,
                  endpoint,
                  make_dry_device(config),
                  {.weights = InitialWeights::Undefined, .plan = plan, .watcher = &log});
    const Progress progress(engine.pool(), config->rng.seed);
    run_dry(engine, left_out, log);
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      predicted.peak_bytes[base::at(tag)] = engine.pool().use(static_cast<tensor::Tag>(tag)).peak;
    }
    predicted.peak_total_bytes = engine.pool().total().peak;
    predicted.at_peak = log.peak();
    predicted.timeline = log.timeline();
  });
  CHECK(total_of(predicted.at_peak.bytes) == predicted.peak_total_bytes,
        "the pieces of rank {} are {} bytes of {}",
        rank,
        total_of(predicted.at_peak.bytes),
        predicted.peak_total_bytes);
  return predicted;
}

std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config,
                                            const std::vector<schedule::RankPlan>& plans,
                                            std::int64_t left_out) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<int> ranks = grid.group_of(grid::GroupKind::Pp, 0);
  std::vector<PredictedMemory> all(ranks.size());
  base::parallel(
      static_cast<int>(std::ssize(base::usable_cores())),
      std::ssize(ranks),
      [&](std::int64_t stage) {
        all[base::at(stage)] =
            predict_memory(config, ranks[base::at(stage)], plans[base::at(stage)], left_out);
      });
  return all;
}

std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config) {
  return predict_memory(config, verified_plans(config));
}

}  // namespace weft::train
