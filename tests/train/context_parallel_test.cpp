// Context parallelism: every exchange of keys reproduces the one-rank run.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "tests/train/train_support.h"
#include "weft/base/text.h"

namespace weft::train {
namespace context_parallel_test {

using config::CpComm;

struct Sharing {
  std::string name;
  int cp = 2;
  std::vector<CpComm> kinds;
  std::vector<std::int64_t> sizes = {};  // for a2a+p2p
  LayoutCase layout = {.world = 2};
};

config::Config four_heads() {
  config::Config config = small_config();
  config.model.num_attention_heads = 4;
  config.model.num_query_groups = 4;
  config.train.micro_batch_size = 2;
  return config;
}

config::Config shared(config::Config config, const Sharing& sharing) {
  config = with_layout(std::move(config), sharing.layout);
  config.model.context_parallel_size = sharing.cp;
  config.model.cp_comm_type = sharing.kinds;
  config.model.hierarchical_context_parallel_sizes = sharing.sizes;
  return config;
}

void expect_equal(const Outcome& got, const Outcome& want) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], 5e-6) << "step " << i;
  }
  for (const auto& [name, values] : want.weights) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    EXPECT_LE(largest_difference(got.weights.at(name), values), 2e-4 * largest) << name;
  }
}

const std::vector<CpComm> kAll{CpComm::P2p, CpComm::AllGather, CpComm::AllToAll};

std::vector<Sharing> cases() {
  using enum CpComm;
  const LayoutCase four{.world = 4};
  return {{.name = "Ring2", .kinds = {P2p}},
          {.name = "Gather2", .kinds = {AllGather}},
          {.name = "Heads2", .kinds = {AllToAll}},
          {.name = "Ring4", .cp = 4, .kinds = {P2p}, .layout = four},
          {.name = "Gather4", .cp = 4, .kinds = {AllGather}, .layout = four},
          {.name = "Heads4", .cp = 4, .kinds = {AllToAll}, .layout = four},
          {.name = "HeadsRing4", .cp = 4, .kinds = {AllToAllP2p}, .sizes = {2, 2}, .layout = four},
          {.name = "OneKindALayer", .kinds = kAll},
          {.name = "Ring2Ep2", .kinds = {P2p}, .layout = {.world = 2, .ep = 2}},
          {.name = "Ring2Ep4", .kinds = {P2p}, .layout = {.world = 4, .ep = 4}},
          {.name = "Heads2Dp2", .kinds = {AllToAll}, .layout = four},
          {.name = "Ring2Tp2", .kinds = {P2p}, .layout = {.world = 4, .tp = 2}},
          {.name = "Gather2Pp3", .kinds = {AllGather}, .layout = {.world = 6, .pp = 3}}};
}

class ContextParallel : public ::testing::TestWithParam<Sharing> {};

TEST_P(ContextParallel, ReproducesTheOneRankRun) {
  const std::int64_t steps = few_or_many(4, 12);
  expect_equal(train_some(shared(four_heads(), GetParam()), steps),
               trained_once(four_heads(), steps));
}

INSTANTIATE_TEST_SUITE_P(Train,
                         ContextParallel,
                         ::testing::ValuesIn(cases()),
                         [](const auto& param_info) { return param_info.param.name; });

// The last token of a chunk has the next chunk's first token as label, which is on another rank.
TEST(ZigZag, LabelsAreTheNextTokensOfTheWholeSequence) {
  MicroBatch whole;  // two sequences
  for (int i = 0; i < 16; ++i) {
    whole.ids.push_back(i);
    whole.labels.push_back(i + 1);
  }
  const MicroBatch outer = tokens_of(whole, {.length = 8, .ranks = 2, .rank = 0});
  const MicroBatch inner = tokens_of(whole, {.length = 8, .ranks = 2, .rank = 1});
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(outer.ids, (Ids{0, 1, 6, 7, 8, 9, 14, 15}));
  EXPECT_EQ(outer.labels, (Ids{1, 2, 7, 8, 9, 10, 15, 16}));
  EXPECT_EQ(inner.ids, (Ids{2, 3, 4, 5, 10, 11, 12, 13}));
  EXPECT_EQ(inner.labels, (Ids{3, 4, 5, 6, 11, 12, 13, 14}));
}

// If all tokens are equal, only positions distinguish them: positions by rank instead of sequence
// would change the loss.
TEST(ZigZag, PositionsAreThoseOfTheWholeSequence) {
  const auto loss_of = [](const config::Config& config) {
    double loss = 0;
    on_ranks(config, [&](Engine& engine) {
      Batch batch = batch_of(engine, 0);
      const auto length = static_cast<std::size_t>(engine.config().model.seq_length);
      for (MicroBatch& micro_batch : batch) {
        for (std::size_t i = 0; i < micro_batch.ids.size(); ++i) {
          micro_batch.ids[i] = i % length == 0 ? 1 : 2;
        }
      }
      const StepTotals totals = forward_step(engine, batch);
      if (engine.rank() == 0) loss = totals.loss;
    });
    return loss;
  };
  config::Config one = four_heads();
  one.model.init_method_std = 0.5;
  const double expected = loss_of(one);
  for (const CpComm kind : kAll) {
    EXPECT_NEAR(loss_of(shared(one, {.name = "", .kinds = {kind}})), expected, 2e-6 * expected);
  }
  config::Config slower = one;
  slower.model.rotary_base = 100;
  EXPECT_GT(std::abs(loss_of(slower) - expected), 1e-4 * expected) << "positions do not count";
}

TEST(ContextParallelLosses, BalancingCountsTheTokensOfAllRanks) {
  config::Config config = four_heads();
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::AuxLoss,
                                                 config::LoadBalancing::SeqAuxLoss,
                                                 config::LoadBalancing::GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.02, 0.03, 0.01};
  config.model.moe_z_loss_coeff = 1e-3;
  config.model.moe_input_jitter_eps = 0.02;
  config.train.global_batch_size = config.train.micro_batch_size;
  // as below: at five times this rate, one seed in four exceeds the tolerance
  config.optimizer.lr = 2e-3;
  const Outcome one = train_some(config, 4);
  expect_equal(train_some(shared(config, cases()[0]), 4), one);
}

TEST(ContextParallelLatent, ReproducesTheOneRankRun) {
  config::Config config = latent_config();
  config.train.micro_batch_size = 2;
  config.optimizer.lr = 2e-3;  // AdamW's first step amplifies small gradients
  const Outcome one = train_some(config, 3);
  for (const CpComm kind : kAll) {
    SCOPED_TRACE(config::word(kind));
    expect_equal(train_some(shared(config, {.name = "", .kinds = {kind}}), 3), one);
  }
}

TEST(ContextParallelOverlap, ChangesNoBit) {
  config::Config config = shared(four_heads(), cases()[3]);
  const Outcome ahead = train_some(config, 2);
  config.comm_overlap.cp_comm_overlap = false;
  expect_same_bits(train_some(config, 2), ahead);
}

TEST(ContextParallelOverlap, MessagesThatComeLateChangeNoBit) {
  config::Config config = shared(four_heads(), cases()[3]);
  const Outcome expected = train_some(config, 2);
  config.fabric.jitter_us = 300;
  expect_same_bits(train_some(config, 2), expected);
}

// Peak bytes of activations and communication.
std::int64_t peak_of(const config::Config& config) {
  std::int64_t peak = 0;
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    const auto own = static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).peak +
                                               engine.pool().use(tensor::Tag::Communication).peak);
    const std::lock_guard lock(mutex);
    peak = std::max(peak, own);
  });
  return peak;
}

TEST(ContextParallelMemory, EightRanksTrainASequenceInLessThanASixthOfOnesMemory) {
  config::Config config = small_config();
  config.model.num_moe_experts.reset();
  config.model.moe_ffn_hidden_size.reset();
  config.model.moe_layer_freq = config::ModelConfig().moe_layer_freq;
  config.model.seq_length = 512;
  config.train.micro_batch_size = config.train.global_batch_size = 1;
  const std::int64_t one = peak_of(config);
  const std::int64_t eight = peak_of(
      shared(config, {.name = "", .cp = 8, .kinds = {CpComm::P2p}, .layout = {.world = 8}}));
  EXPECT_LE(eight * 6, one) << eight << " of " << one;
}

}  // namespace context_parallel_test
}  // namespace weft::train
