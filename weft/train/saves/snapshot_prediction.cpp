#include "weft/train/saves/snapshot_prediction.h"

#include "weft/base/casts.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/parallel.h"
#include "weft/derive/derived.h"
#include "weft/train/launch.h"
#include "weft/train/saves/save_parts.h"

namespace weft::train {
namespace {

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
