// The state list is all a resumed run needs.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "tests/train/train_support.h"
#include "weft/checkpoint/huggingface.h"
#include "weft/tensor/transfer.h"
#include "weft/train/state_list.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace state_test {

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

void expect_restored_run_continues(const config::Config& config) {
  const auto ranks = static_cast<std::size_t>(*config.runtime.world_size);
  std::vector<Snapshot> half(ranks), whole(ranks);
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    const auto rank = static_cast<std::size_t>(engine.rank());
    advance(engine, progress, 3);
    half[rank] = take(engine, progress);
    advance(engine, progress, 6);
    whole[rank] = take(engine, progress);
  });
  on_ranks(config, [&](Engine& engine) {
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

class State : public ::testing::TestWithParam<config::Precision> {};

TEST_P(State, ARestoredRunContinuesWithTheSameBits) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.params_dtype = GetParam();
  expect_restored_run_continues(config);
}

TEST_P(State, ARestoredPipelineContinuesWithTheSameBits) {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  config.model.params_dtype = GetParam();
  config.model.share_embeddings_and_output_weights = true;
  expect_restored_run_continues(config);
}

TEST_P(State, ARestoredRunContinuesWithItsRoutersBiases) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.params_dtype = GetParam();
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_enable_expert_bias = true;
  expect_restored_run_continues(config);
}

INSTANTIATE_TEST_SUITE_P(Precisions,
                         State,
                         ::testing::Values(config::Precision::Fp32, config::Precision::Bf16),
                         [](const auto& param_info) {
                           return std::string(config::word(param_info.param));
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

// What ranks hold of a state, by the name of the global tensor.
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

// What an optimizer that is spread over ranks would keep: each an equal range of every bucket.
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
    for (std::int64_t i = 0; i < ranks.tp * ranks.ep * ranks.etp; ++i) {
      model::Parameters parameters(pool,
                                   *stream,
                                   model,
                                   model::whole_model(model),
                                   {.tp = static_cast<int>(i % ranks.tp),
                                    .ep = static_cast<int>(i / ranks.tp % ranks.ep),
                                    .etp = static_cast<int>(i / ranks.tp / ranks.ep)},
                                   {.bucket_size = ranks.bucket_size, .shards = ranks.shards});
      parameters.initialise(*stream, 11);
      for (const model::Home home : {model::Home::Dense, model::Home::Expert}) {
        const model::ParameterBuffer& buffer = parameters.buffer(home);
        for (const model::Bucket& bucket : buffer.layout.buckets) {
          for (std::int64_t rank = 0; rank < ranks.shards; ++rank) {
            const tensor::Range range = buffer.layout.shard(bucket, rank);
            tensor::Tensor moments(pool, tensor::DType::F32, {range.count}, tensor::Tag::Optimizer);
            // As good as any other state: what the weights are.
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

TEST(HuggingFaceOut, EveryLayoutWritesTheSameFile) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "weft_hf_out";
  config::Config config = small_config();
  config.model.moe_router_pre_softmax = true;
  config.model.moe_router_norm_topk_prob = true;
  std::vector<std::string> files;
  for (const LayoutCase& layout : {LayoutCase{},
                                   LayoutCase{.world = 2, .ep = 2},
                                   LayoutCase{.world = 4, .ep = 2},
                                   LayoutCase{.world = 6, .ep = 2, .pp = 3, .stages = "Et||ttL"},
                                   LayoutCase{.world = 4, .ep = 2, .pp = 2, .stages = "Et|ttL"}}) {
    fs::remove_all(folder);
    on_ranks(with_layout(config, layout), [&](Engine& engine) {
      save_weights(engine, folder, huggingface_config_for(engine.config().model));
    });
    files.push_back(base::read_text(folder / "model.safetensors"));
  }
  for (const std::string& file : files) EXPECT_EQ(files[0], file);
  const checkpoint::HuggingFaceModel model(folder);
  const LayoutCase stages{.world = 4, .ep = 2, .pp = 2, .stages = "Et|ttL"};
  on_ranks(with_layout(config, stages), [&](Engine& engine) {
    const std::vector<float> before =
        floats_of(engine, engine.parameters().buffer(model::Home::Expert).weights);
    fill(engine, engine.parameters().buffer(model::Home::Expert).weights, 0);
    load_weights(engine, model);
    EXPECT_EQ(before, floats_of(engine, engine.parameters().buffer(model::Home::Expert).weights));
  });
  fs::remove_all(folder);
}

}  // namespace state_test
}  // namespace weft::train
