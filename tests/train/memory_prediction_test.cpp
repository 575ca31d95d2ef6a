// What a dry step counts, against what a real one does.
#include "weft/train/memory_prediction.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/train/engine_cases_support.h"
#include "weft/kernels/device.h"
#include "weft/train/trainer.h"

namespace weft::train {
namespace memory_prediction_test {

struct Peaks {
  std::array<std::size_t, tensor::kTags> tags{};
  std::size_t total = 0;
  bool operator==(const Peaks&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Peaks& peaks) {
  return out << fmt::format("{} at one time, by tag {}", peaks.total, peaks.tags);
}

Peaks peaks_of(const tensor::Pool& pool) {
  Peaks peaks{.total = pool.total().peak};
  for (std::size_t tag = 0; tag < peaks.tags.size(); ++tag) {
    peaks.tags[tag] = pool.use(static_cast<tensor::Tag>(tag)).peak;
  }
  return peaks;
}

// The same choice on every rank, each expert as often as any other: what a dry step takes of its
// peers.
Batch even_batch(const Engine& engine) {
  const config::ModelConfig& model = engine.config().model;
  const std::int64_t tokens = engine.config().train.micro_batch_size * model.seq_length;
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 1);
  MicroBatch part{.ids = ids, .labels = ids, .experts = {}};
  for (int layer = 0; layer < model.num_layers; ++layer) {
    std::vector<std::int32_t>& experts = part.experts.emplace_back();
    if (!model.is_moe_layer(layer)) continue;
    const std::int64_t k = model.moe_router_topk, stride = model.experts() / k;
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t j = 0; j < k; ++j) {
        experts.push_back(static_cast<std::int32_t>(j * stride + token % stride));
      }
    }
  }
  return Batch(static_cast<std::size_t>(engine.share().micro_batches), part);
}

void run_steps(Engine& engine, std::int64_t steps) {
  const Batch batch = even_batch(engine);
  for (std::int64_t step = 0; step < steps; ++step) {
    train_step(engine, {.batch = batch, .step = step}, exec::Tracing::Off);
  }
  forward_step(engine, batch);
  engine.program().drop_states();
}

class DryStep : public testing::TestWithParam<EngineCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts, DryStep, testing::ValuesIn(engine_cases()), [](const auto& test) {
  return test.param.name;
});

TEST_P(DryStep, TakesWhatARealOneTakes) {
  const auto& [name, config, detail] = GetParam();
  std::mutex mutex;
  std::map<int, Peaks> real;
  on_ranks(
      config,
      [&](Engine& engine) {
        run_steps(engine, 2);
        const std::lock_guard lock(mutex);
        real[engine.rank()] = peaks_of(engine.pool());
      },
      detail);
  const rules::JudgedConfig run = judged(config);
  for (const auto& [rank, peaks] : real) {
    comm::run_fake({.world = static_cast<int>(real.size()), .rank = rank},
                   [&](comm::Endpoint& endpoint) {
                     Engine engine(run,
                                   endpoint,
                                   detail,
                                   kernels::make_dry_device(),
                                   InitialWeights::Undefined);
                     run_steps(engine, 1);
                     EXPECT_EQ(peaks_of(engine.pool()), peaks) << "rank " << rank;
                   });
  }
}

}  // namespace memory_prediction_test
}  // namespace weft::train
