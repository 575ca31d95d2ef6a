#include "tests/train/saved_state_support.h"

#include <gtest/gtest.h>

namespace weft::train {

using devices::DeviceKind;

void put(Engine& engine, const Progress& progress, Global& all, std::mutex& mutex) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
    std::vector<std::byte> values(static_cast<std::size_t>(entry.tensor.bytes()));
    stream.download(values.data(), entry.tensor.raw(stream), entry.tensor.bytes());
    stream.synchronize();
    const std::int64_t size = tensor::size_of(entry.tensor.dtype());
    const std::lock_guard lock(mutex);
    std::vector<std::byte>& whole = all[entry.name];
    whole.resize(static_cast<std::size_t>(entry.slice.global.elements() * size));
    for (const tensor::Run& run : tensor::runs_of(entry.slice)) {
      std::copy_n(values.begin() + run.local * size,
                  run.count * size,
                  whole.begin() + run.global * size);
    }
  }
}

Global saved(const config::Config& config, std::int64_t steps, DeviceKind device) {
  Global all;
  std::mutex mutex;
  on_ranks(
      config,
      [&](Engine& engine) {
        Progress progress(engine.pool(), config.rng.seed);
        while (progress.step() < steps) {
          const Batch batch = batch_of(engine, progress.step());
          train_step(engine,
                     {.batch = batch, .step = progress.step(), .learning_rate = 1e-2},
                     exec::Tracing::Off);
          progress.advance(config.train.global_batch_size);
        }
        put(engine, progress, all, mutex);
        EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
      },
      {},
      device);
  return all;
}

Global loaded(const config::Config& config, DeviceKind device) {
  Global all;
  std::mutex mutex;
  const std::optional<Resumption> from = find_resumption(config);
  EXPECT_TRUE(from.has_value());
  on_ranks(
      config,
      [&](Engine& engine) {
        Progress progress(engine.pool(), config.rng.seed);
        load_checkpoint(engine, progress, *from);
        EXPECT_EQ(progress.step(), from->manifest.step);
        put(engine, progress, all, mutex);
      },
      {},
      device);
  return all;
}

}  // namespace weft::train
