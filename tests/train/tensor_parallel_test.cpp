// Tensor parallelism reproduces the one-rank run, and overlap changes no bit.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/sanitized.h"
#include "tests/train/train_support.h"
#include "weft/base/text.h"
#include "weft/model/tensor_copies.h"

namespace weft::train {
namespace tensor_parallel_test {

const std::int64_t kSteps = few_or_many(4, 12);

config::Config with_shared(config::Config config) {
  config.model.moe_shared_expert_intermediate_size = 20;
  config.model.moe_shared_expert_gate = true;
  return config;
}

config::Config with_groups(config::Config config, std::int64_t groups) {
  config.model.num_query_groups = groups;
  return config;
}

config::Config with_wide_norm(config::Config config) {
  config.model.qk_layernorm = config::QkNorm::Projection;
  return config;
}

config::Config with_context(config::Config config) {
  config.model.context_parallel_size = 2;
  return config;
}

config::Config tied(config::Config config) {
  config.model.share_embeddings_and_output_weights = true;
  return config;
}

config::Config with_whole_queries(config::Config config) {
  config.model.q_lora_rank = std::nullopt;
  return config;
}

config::Config with_shared_optimizer(config::Config config) {
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.ddp.overlap_grad_reduce = true;
  config.ddp.overlap_param_gather = config.optimizer.overlap_param_gather = true;
  config.ddp.bucket_size = 3000;
  return config;
}

struct Case {
  std::string name;
  config::Config config;
  LayoutCase layout;
  config::Config (*change)(config::Config) = [](config::Config same) { return same; };
};

void PrintTo(const Case& at, std::ostream* out) { *out << at.name; }

// Cases that differ from one rank only by rounding: no choice of this small model is near a tie.
class TensorParallel : public ::testing::TestWithParam<Case> {};

TEST_P(TensorParallel, EqualsTheOneRankRun) {
  config::Config config = GetParam().config;
  config.optimizer.lr = 1e-3;
  const Outcome& one = trained_once(config, kSteps);
  const Outcome many =
      train_some(GetParam().change(with_layout(config, GetParam().layout)), kSteps);
  expect_equal_to_rounding(many, one);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    TensorParallel,
    ::testing::ValuesIn(third_or_all<Case>(
        {Case{"Tp2", small_config(), {.world = 2, .tp = 2}},
         Case{"Tp4SharesKeyHeads", small_config(), {.world = 4, .tp = 4}},
         Case{"Tp2OfOneKeyHead", with_groups(small_config(), 1), {.world = 2, .tp = 2}},
         Case{"Tp2Ep2", small_config(), {.world = 2, .ep = 2, .tp = 2}},
         Case{"Tp2Ep4", small_config(), {.world = 4, .ep = 4, .tp = 2}},
         Case{"Tp2Dp2", small_config(), {.world = 4, .tp = 2}},
         Case{"Tp4Dp2SharedOptimizer",
              small_config(),
              {.world = 8, .ep = 2, .tp = 4},
              with_shared_optimizer},
         Case{"Tp2Pp2Tied", tied(deep_config()), {.world = 4, .tp = 2, .pp = 2}},
         Case{"Tp2Ep2Pp2Vpp2", deep_config(), {.world = 4, .ep = 2, .tp = 2, .pp = 2, .vpp = 2}},
         Case{"NormOfProjectionsTp2Cp2",
              with_wide_norm(small_config()),
              {.world = 4, .tp = 2},
              with_context},
         Case{"NormOfProjectionsTp4SharesKeyHeads",
              with_wide_norm(small_config()),
              {.world = 4, .ep = 2, .tp = 4}},
         Case{"Tp2Tied", tied(small_config()), {.world = 2, .tp = 2}},
         Case{"LatentTp4", latent_config(), {.world = 4, .tp = 4}},
         Case{"LatentTp2OfWholeQueries",
              with_whole_queries(latent_config()),
              {.world = 2, .tp = 2}},
         Case{"SharedTp2Ep2", with_shared(small_config()), {.world = 2, .ep = 2, .tp = 2}}},
        1)),
    [](const auto& param_info) { return param_info.param.name; });

TEST(TensorParallelOverlap, ChangesNoBit) {
  config::Config config =
      with_layout(with_shared(deep_config()), {.world = 4, .ep = 2, .tp = 2, .pp = 2, .vpp = 2});
  const Outcome plain = train_some(config, 3);
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  expect_same_bits(plain, train_some(config, 3));
  config.comm_overlap.delay_wgrad_compute = true;
  expect_same_bits(plain, train_some(config, 3));
  config.model.ep_overlap_early_attn_memory_release = true;
  expect_same_bits(plain, train_some(config, 3));
}

TEST(TensorParallelOverlap, OfNormsOverProjectionsChangesNoBit) {
  config::Config config =
      with_layout(with_wide_norm(deep_config()), {.world = 4, .ep = 2, .tp = 2, .pp = 2, .vpp = 2});
  config.model.params_dtype = base::DType::BF16;
  const Outcome plain = train_some(config, 2);
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  expect_same_bits(plain, train_some(config, 2));
}

TEST(TensorParallelOverlap, OfSharedExpertsChangesNoBit) {
  for (const auto precision : {base::DType::F32, base::DType::BF16}) {
    config::Config config =
        with_layout(with_shared(small_config()), {.world = 4, .ep = 2, .tp = 2});
    config.model.params_dtype = precision;
    const Outcome plain = train_some(config, 3);
    config.model.moe_shared_expert_overlap = true;
    config.model.overlap_dispatch_backward_with_experts_wgrad = true;
    expect_same_bits(plain, train_some(config, 3));
    config.comm_overlap.moe_token_slices = 2;
    const Outcome sliced = train_some(config, 3);
    EXPECT_EQ(sliced.losses.front(), plain.losses.front());
  }
}

// Parts that are recomputed besides the gathered tokens of tensor parallelism.
TEST(TensorParallelRecompute, ChangesNoBit) {
  using schedule::Part;
  using schedule::Piece;
  const config::Config config = with_layout(small_config(), {.world = 2, .tp = 2});
  const Outcome plain = train_some(config, 2);
  for (const schedule::Detail& detail :
       {schedule::Detail{{}, {{Piece::Attention, Part::Core}, {Piece::Mlp, Part::Act}}},
        schedule::Detail{{}, {{Piece::Attention, Part::Norm}, {Piece::Attention, Part::Qkv}}},
        schedule::Detail{{}, {{Piece::Mlp, Part::Norm}, {Piece::Mlp, Part::Fc1}}}}) {
    expect_same_bits(plain, train_some(config, 2, detail));
  }
}

TEST(TensorCopies, AreCountedByTheFirstHolder) {
  using model::CopiedRange;
  const std::vector<CopiedRange> copied{{.elements = {.begin = 4, .count = 2}, .parts = 1},
                                        {.elements = {.begin = 8, .count = 4}, .parts = 2}};
  const auto counted = [&](std::int64_t rank) {
    return model::counted_ranges({{.begin = 0, .count = 20}}, copied, 4, rank);
  };
  using Ranges = std::vector<tensor::Range>;
  EXPECT_EQ(counted(0), (Ranges{{0, 20}}));
  EXPECT_EQ(counted(1), (Ranges{{0, 4}, {6, 2}, {12, 8}}));
  EXPECT_EQ(counted(2), (Ranges{{0, 4}, {6, 14}}));
}

struct CopiedRangeValues {
  std::string name;
  std::vector<float> values;
};

// Values that a rank holds together with others, named by the part if there are several.
std::vector<CopiedRangeValues> copied_values(Engine& engine) {
  std::vector<CopiedRangeValues> all;
  const std::int64_t tp = engine.groups().grid.tp();
  for (const model::CopiedRange& copied : model::copied_ranges(engine.parameters(), tp)) {
    const auto& [begin, count] = copied.elements;
    const tensor::Tensor& weights = engine.parameters().buffer(model::Home::Dense).weights;
    all.push_back({fmt::format("{}, part {}", begin, engine.groups().self.tp * copied.parts / tp),
                   floats_of(engine, weights.range(begin, {count}))});
  }
  return all;
}

// All ranks with a copy end each step with equal copies.
TEST(TensorCopies, StayAlike) {
  const config::Config config = with_layout(small_config(), {.world = 4, .tp = 4});
  std::mutex mutex;
  std::map<std::string, std::vector<float>> keys;  // by the rows of a rank
  on_ranks(config, [&](Engine& engine) {
    for (std::int64_t step = 0; step < 2; ++step) {
      const Batch batch = batch_of(engine, step);
      train_step(engine, {.batch = batch, .step = step, .learning_rate = 0.01}, exec::Tracing::Off);
    }
    const std::lock_guard lock(mutex);
    for (const CopiedRangeValues& one : copied_values(engine)) {
      const auto [found, is_new] = keys.emplace(one.name, one.values);
      EXPECT_EQ(found->second, one.values) << one.name << (is_new ? ", the first" : "");
    }
  });
  EXPECT_GE(keys.size(), 3u);
}

}  // namespace tensor_parallel_test
}  // namespace weft::train
