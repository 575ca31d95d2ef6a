#include "weft/train/guard/memory_prediction.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/parallel.h"
#include "weft/data/dataset.h"
#include "weft/derive/derived.h"
#include "weft/train/launch.h"
#include "weft/train/log/model_statistics.h"
#include "weft/train/saves/save_parts.h"
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

// State of one rank as other ranks see it: keys of its parameters and optimizer, on a dry device.
std::vector<EntryKey> keys_of_rank(const rules::JudgedConfig& config, int world, int rank) {
  std::vector<EntryKey> keys;
  comm::run_fake({.world = world, .rank = rank}, [&](comm::Endpoint& endpoint) {
    const std::unique_ptr<tensor::Device> device = make_dry_device(config);
    tensor::Pool pool(*device);
    const Groups groups = join_groups(config, endpoint);
    const std::unique_ptr<tensor::Stream> stream =
        device->make_stream("compute", tensor::StreamRole::Alone);
    const model::Parameters parameters =
        make_parameters(pool, *stream, config, groups.self, InitialWeights::Undefined);
    const std::vector<OptimizerShare> optimizers =
        make_optimizers(pool, *stream, config, parameters, groups, stream.get());
    const Progress progress(pool, config->rng.seed);
    for (const checkpoint::StateEntry& entry :
         stored_entries(state_list(parameters, optimizers, progress))) {
      keys.push_back(key_of(entry));
    }
  });
  return keys;
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

std::vector<std::size_t> predict_snapshots(const rules::JudgedConfig& config,
                                           const std::vector<int>& ranks) {
  const int world = static_cast<int>(derive::layout_of(config).world);
  std::vector<std::vector<EntryKey>> keys(base::at(world));
  base::parallel(static_cast<int>(std::ssize(base::usable_cores())), world, [&](std::int64_t rank) {
    keys[base::at(rank)] = keys_of_rank(config, world, static_cast<int>(rank));
  });
  const std::map<std::int64_t, int> writers = writers_of(keys);
  std::vector<std::size_t> all;
  for (const int rank : ranks) {
    std::size_t bytes = 0;
    for (const EntryKey& key : keys[base::at(rank)]) {
      if (writers.at(key.key) == rank) bytes += checkpoint::Snapshot::room_for(key.bytes);
    }
    all.push_back(bytes);
  }
  return all;
}

}  // namespace weft::train
