// The state list suffices for resuming a run.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "tests/train/train_support.h"
#include "weft/tensor/transfer.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {
namespace state_test {

using devices::DeviceKind;
using Snapshot = std::map<std::string, std::vector<std::byte>>;

Snapshot take(Engine& engine, const Progress& progress) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  Snapshot snapshot;
  for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
    std::vector<std::byte>& bytes = snapshot[entry.name];
    bytes.resize(static_cast<std::size_t>(entry.tensor.bytes()));
    stream.download(bytes.data(), entry.tensor.raw(stream), entry.tensor.bytes());
  }
  stream.synchronize();
  return snapshot;
}

void restore(Engine& engine, const Progress& progress, const Snapshot& snapshot) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
    const std::vector<std::byte>& bytes = snapshot.at(entry.name);
    stream.upload(entry.tensor.raw(stream), bytes.data(), entry.tensor.bytes());
  }
  stream.synchronize();
}

void advance(Engine& engine, Progress& progress, std::int64_t until) {
  while (progress.step() < until) {
    const Batch batch = batch_of(engine, progress.step());
    train_step(engine,
               {.batch = batch, .step = progress.step(), .learning_rate = 1e-2},
               exec::Tracing::Off);
    progress.advance(engine.config().train.global_batch_size);
  }
}

void expect_restored_run_continues(const config::Config& config, DeviceKind device) {
  const auto ranks = static_cast<std::size_t>(*config.runtime.world_size);
  std::vector<Snapshot> half(ranks), whole(ranks);
  const auto run = [&](const std::function<void(Engine&)>& body) {
    on_ranks(config, body, {}, device);
  };
  run([&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    const auto rank = static_cast<std::size_t>(engine.rank());
    advance(engine, progress, 3);
    half[rank] = take(engine, progress);
    advance(engine, progress, 6);
    whole[rank] = take(engine, progress);
  });
  run([&](Engine& engine) {
    Progress progress(engine.pool(), 0);
    const auto rank = static_cast<std::size_t>(engine.rank());
    advance(engine, progress, 1);  // a state that is wrong in every tensor
    restore(engine, progress, half[rank]);
    EXPECT_EQ(progress.step(), 3);
    EXPECT_EQ(progress.samples(), 24);
    advance(engine, progress, 6);
    EXPECT_EQ(take(engine, progress), whole[rank]);
  });
}

struct StateCase {
  base::DType precision;
  DeviceKind device;
};

std::vector<StateCase> state_cases() {
  std::vector<StateCase> cases;
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    for (const DeviceKind device : devices::all_devices()) cases.push_back({precision, device});
  }
  return cases;
}

class State : public ::testing::TestWithParam<StateCase> {};

TEST_P(State, ARestoredRunContinuesWithTheSameBits) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.params_dtype = GetParam().precision;
  expect_restored_run_continues(config, GetParam().device);
}

TEST_P(State, ARestoredPipelineContinuesWithTheSameBits) {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  config.model.params_dtype = GetParam().precision;
  config.model.share_embeddings_and_output_weights = true;
  expect_restored_run_continues(config, GetParam().device);
}

TEST_P(State, ARestoredShareOfTheOptimizerContinuesWithTheSameBits) {
  config::Config config = with_layout(small_config(), {.world = 4, .ep = 2});
  config.model.params_dtype = GetParam().precision;
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.comm_overlap.bucket_size = 3000;
  expect_restored_run_continues(config, GetParam().device);
}

TEST_P(State, ARestoredRunContinuesWithItsRoutersBiases) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.params_dtype = GetParam().precision;
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_enable_expert_bias = true;
  expect_restored_run_continues(config, GetParam().device);
}

INSTANTIATE_TEST_SUITE_P(Precisions,
                         State,
                         ::testing::ValuesIn(state_cases()),
                         [](const auto& test) {
                           return std::string(name_of(test.param.precision)) + "On" +
                                  devices::name_of(test.param.device);
                         });

TEST(StateList, PartsOfExpertsTileTheGlobalTensor) {
  const config::Config config = with_layout(small_config(), {.world = 4, .ep = 4});
  std::mutex mutex;
  std::vector<std::int64_t> offsets;
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), 1);
    for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
      if (entry.name != "optimizer.moment2/layers.0.experts.fc1.weight") continue;
      EXPECT_EQ(entry.slice.global, (tensor::Shape{8, 48, 32}));
      EXPECT_EQ(entry.tensor.shape(), (tensor::Shape{2, 48, 32}));
      const std::lock_guard lock(mutex);
      offsets.push_back(entry.slice.dims[0].front().begin);
    }
  });
  std::ranges::sort(offsets);
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 2, 4, 6}));
}

// State of all ranks, by the name of the global tensor.
using Global = std::map<std::string, std::vector<float>>;

void put(tensor::Stream& stream, Global& all, const std::vector<checkpoint::StateEntry>& list) {
  for (const checkpoint::StateEntry& entry : list) {
    std::vector<float>& whole = all[entry.name];
    whole.resize(static_cast<std::size_t>(entry.slice.global.elements()), -1);
    const std::vector<float> values = tensor::read<float>(stream, entry.tensor);
    for (const tensor::Run& run : tensor::runs_of(entry.slice)) {
      std::copy_n(values.begin() + run.local, run.count, whole.begin() + run.global);
    }
  }
}

void get(tensor::Stream& stream,
         const Global& all,
         const std::vector<checkpoint::StateEntry>& list) {
  for (const checkpoint::StateEntry& entry : list) {
    std::vector<float> values = tensor::read<float>(stream, entry.tensor);
    for (const tensor::Run& run : tensor::runs_of(entry.slice)) {
      std::copy_n(all.at(entry.name).begin() + run.global, run.count, values.begin() + run.local);
    }
    tensor::write<float>(stream, entry.tensor, values);
  }
}

// Shares of an optimizer that is spread over ranks: equal ranges of every bucket.
TEST(StateList, SharesOfBucketsUnderOneLayoutAreReadUnderAnother) {
  struct Ranks {
    std::int64_t tp = 1, ep = 1, etp = 1, shards = 1, bucket_size = 0;
  };
  config::ModelConfig model = small_config().model;
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const auto shares = [&](const Ranks& ranks, const auto& visit) {
    model.tensor_model_parallel_size = ranks.tp;
    model.expert_model_parallel_size = ranks.ep;
    model.expert_tensor_parallel_size = ranks.etp;
    const derive::BufferRules rules{.bucket_size = ranks.bucket_size, .shards = ranks.shards};
    for (std::int64_t i = 0; i < ranks.tp * ranks.ep * ranks.etp; ++i) {
      model::Parameters parameters(pool,
                                   *stream,
                                   model,
                                   model::whole_model(model),
                                   {.tp = static_cast<int>(i % ranks.tp),
                                    .ep = static_cast<int>(i / ranks.tp % ranks.ep),
                                    .etp = static_cast<int>(i / ranks.tp / ranks.ep)},
                                   {.dense = rules, .expert = rules});
      parameters.initialise(*stream, 11);
      for (const model::Home home : {model::Home::Dense, model::Home::Expert}) {
        const model::ParameterBuffer& buffer = parameters.buffer(home);
        for (const model::Bucket& bucket : buffer.layout.buckets) {
          for (std::int64_t rank = 0; rank < ranks.shards; ++rank) {
            const tensor::Range range = buffer.layout.shard(bucket, rank);
            tensor::Tensor moments(pool, tensor::DType::F32, {range.count}, tensor::Tag::Optimizer);
            // Weights stand in for a state.
            const std::vector<float> weights =
                tensor::read_floats(*stream, buffer.weights.range(range.begin, {range.count}));
            visit(moments,
                  weights,
                  share_list(parameters, home, range, {{.name = "moment", .values = moments}}));
          }
        }
      }
    }
  };
  Global all;
  shares(
      {.tp = 2, .ep = 2, .etp = 2, .shards = 3, .bucket_size = 2000},
      [&](const tensor::Tensor& moments, const std::vector<float>& weights, const auto& entries) {
        tensor::write<float>(*stream, moments, weights);
        put(*stream, all, entries);
      });
  for (const Ranks& ranks : {Ranks{}, Ranks{.ep = 4, .shards = 5}, Ranks{.tp = 2, .shards = 2}}) {
    shares(
        ranks,
        [&](const tensor::Tensor& moments, const std::vector<float>& weights, const auto& entries) {
          kernels::zero(*stream, moments);
          get(*stream, all, entries);
          ASSERT_EQ(tensor::read<float>(*stream, moments), weights);
        });
  }
}

}  // namespace state_test
}  // namespace weft::train
