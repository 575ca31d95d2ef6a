#include "weft/train/memory_prediction.h"

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/train/launch.h"
#include "weft/train/state_list.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

// Some token everywhere, labelled.
Batch batch_without_data(const Engine& engine) {
  const config::Config& config = engine.config();
  const std::vector<std::int32_t> tokens(
      base::at(config.train.micro_batch_size * config.model.seq_length));
  return Batch(base::at(engine.share().micro_batches),
               MicroBatch{.ids = tokens, .labels = tokens, .experts = {}});
}

void run_dry(Engine& engine) {
  const Batch batch = batch_without_data(engine);
  train_step(engine, {.batch = batch}, exec::Tracing::Off);
  if (engine.config().train.eval_interval <= 0) return;
  evaluate_step(engine, batch);
}

}  // namespace

PredictedMemory predict_memory(const rules::JudgedConfig& config, int rank) {
  PredictedMemory predicted{.rank = rank};
  const comm::LaunchOptions world{.world = static_cast<int>(derive::layout_of(config).world),
                                  .rank = rank};
  comm::run_fake(world, [&](comm::Endpoint& endpoint) {
    Engine engine(config, endpoint, {}, make_dry_device(config), InitialWeights::Undefined);
    const Progress progress(engine.pool(), config->rng.seed);
    run_dry(engine);
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      predicted.peak_bytes[base::at(tag)] = engine.pool().use(static_cast<tensor::Tag>(tag)).peak;
    }
    predicted.peak_total_bytes = engine.pool().total().peak;
  });
  return predicted;
}

std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config) {
  const grid::Grid grid(derive::layout_of(config));
  std::vector<PredictedMemory> all;
  for (const int rank : grid.group_of(grid::GroupKind::Pp, 0)) {
    all.push_back(predict_memory(config, rank));
  }
  return all;
}

}  // namespace weft::train
