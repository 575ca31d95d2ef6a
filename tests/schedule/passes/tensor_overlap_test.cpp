// Tokens that tensor-parallel ranks exchange in steps: cover of each transfer.
#include "weft/schedule/passes/tensor_overlap.h"

#include <gtest/gtest.h>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/derive/derived.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace tensor_overlap_test {

const PlanCase kDense{.layers = "d",
                      .ep = 1,
                      .dp = 1,
                      .tp = 2,
                      .tp_overlap = true,
                      .micro_batches = 1};

PlanCase four_ranks() {
  PlanCase four = kDense;
  four.tp = 4;
  return four;
}

TEST(TensorOverlap, ExchangesOneRanksTokensAfterTheOthers) {
  EXPECT_TRUE(matches_golden("tensor_overlap.txt", print(plans_of(kDense)[0].training)));
}

TEST(TensorOverlap, EveryTransferIsUnderAProduct) {
  const Graph graph = plans_of(four_ranks())[0].training;
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"0F0.attention.gather#1", "0F0.attention.qkv#0"},
      {"0F0.mlp.gather#2", "0F0.mlp.fc1#1"},
      {"0F0.mlp.scatter#0", "0F0.mlp.fc2#1"},
      {"0F0.attention.scatter#2", "0F0.attention.proj#3"},
      {"0D0.mlp.scatter#2", "0D0.mlp.fc2#3"},
      {"0D0.attention.scatter", "0W0.mlp.fc2"},
      {"0D0.mlp.gather", "0W0.mlp.fc1"},
      {"0D0.attention.gather", "0W0.attention.qkv"}};
  for (const auto& [transfer, product] : pairs) {
    EXPECT_TRUE(run_together(graph, transfer, product)) << transfer;
  }
}

TEST(TensorOverlap, WhatAWeightGradientReadsTravelsBeforeWhatItsInputGradientSends) {
  const Graph graph = plans_of(four_ranks())[0].training;
  for (const std::string node : {"0D0.attention.core", "0D0.attention.qkv"}) {
    EXPECT_TRUE(run_together(graph, "0R0.attention.gather", node)) << node;
  }
  const Reach reach(graph);
  EXPECT_TRUE(reach.before(find(graph, "0R0.mlp.gather"), find(graph, "0D0.mlp.gather")));
}

// With delayed weight gradients, input gradients are the only cover for their sends.
TEST(TensorOverlap, InputGradientsRunInStepsWhereWeightGradientsWait) {
  PlanCase c = four_ranks();
  c.layers = "dd";
  c.pp = 2;
  c.schedule = config::PipelineSchedule::ZeroBubble;
  c.overlap_p2p = true;
  c.micro_batches = 4;
  const Graph graph = plans_of(c)[1].training;
  EXPECT_TRUE(run_together(graph, "1D0.mlp.gather#3", "1D0.mlp.fc1#2"));
  EXPECT_TRUE(run_together(graph, "1D0.attention.gather#1", "1D0.attention.qkv#0"));
}

// So do layers without a spare weight gradient: a layer of routed experts alone.
TEST(TensorOverlap, AttentionsProjectionRunsInStepsWhereNoFeedForwardIsBesideIt) {
  const PlanCase experts{.layers = "m", .tp = 4, .tp_overlap = true, .micro_batches = 1};
  const Graph graph = plans_of(experts)[0].training;
  EXPECT_TRUE(run_together(graph, "0D0.attention.scatter#0", "0D0.attention.proj#1"));
}

TEST(TensorOverlap, SharedExpertsCoverAttentionsGradientsWhereTheyAreAsWideAsItsHeads) {
  PlanCase c{.layers = "m", .tp = 4, .tp_overlap = true, .micro_batches = 1, .shared = true};
  config::Config config = config_of(c);
  for (const bool is_wide : {true, false}) {
    config.model.moe_shared_expert_intermediate_size =
        config.model.query_width() / (is_wide ? 1 : 2);
    const Graph graph = plan_step(config, grid::Grid(derive::layout_of(config)))[0].training;
    if (is_wide) {
      EXPECT_TRUE(run_together(graph, "0D0.attention.scatter", "0W0.shared.fc2"));
    } else {
      EXPECT_TRUE(run_together(graph, "0D0.attention.scatter#0", "0D0.attention.proj#1"));
    }
  }
}

// No products are beside its exchange.
TEST(TensorOverlap, TheEmbeddingTravelsBesideTheMicroBatchNextToIt) {
  PlanCase c = kDense;
  c.layers = "dd";
  c.micro_batches = 3;
  const Graph graph = plans_of(c)[0].training;
  EXPECT_TRUE(run_together(graph, "F1.embed.scatter", "0D0.attention.core"));
  EXPECT_TRUE(run_together(graph, "D0.embed.scatter", "0F1.attention.core"));
  EXPECT_TRUE(run_together(graph, "D1.embed.scatter", "0F2.attention.qkv#1"));
}

TEST(TensorOverlap, WeightGradientsCoverTheFirstGradientsOfSmallProducts) {
  PlanCase c = four_ranks();
  c.layers = "dd";
  const Graph graph = plans_of(c)[0].training;
  EXPECT_TRUE(run_together(graph, "1W0.mlp.fc2", "1D0.attention.scatter"));
  EXPECT_TRUE(run_together(graph, "1W0.attention.proj", "0D0.mlp.scatter#2"));
}

// The rank's own tokens are in no transfer, but readers of the products must wait for them.
TEST(TensorOverlap, WhatFollowsWaitsForTheOwnTokensToo) {
  PlanCase c{.layers = "m", .tp = 4, .tp_overlap = true, .micro_batches = 1, .shared = true};
  const Graph graph = plans_of(c)[0].training;
  const Reach reach(graph);
  const auto before = [&](const std::string& first, const std::string& second) {
    EXPECT_TRUE(reach.before(find(graph, first), find(graph, second))) << first << " " << second;
  };
  before("0F0.shared.fc2#3", "0F0.merge");
  before("0F0.attention.proj#3", "0F0.attention.add");
  before("0F0.attention.qkv#0", "0F0.attention.core");
  before("0F0.shared.fc1#3", "0F0.shared.fc2#0");
  before("0D0.shared.fc1", "0D0.route");
  before("0D0.merge", "0D0.shared.fc2#3");
}

TEST(TensorOverlap, KeepsWhatThePlainOrderKeeps) {
  PlanCase plain = four_ranks();
  plain.tp_overlap = false;
  const auto kept_of = [](const PlanCase& c) {
    const RankPlan plan = plans_of(c)[0];
    const std::vector<std::int64_t> kept =
        kept_after_each(plan.training, plan.anatomy, [](const Node&) { return Load{.tokens = 8}; });
    EXPECT_EQ(kept.back(), 0);
    return std::ranges::max(kept);
  };
  EXPECT_EQ(kept_of(four_ranks()), kept_of(plain));
}

}  // namespace tensor_overlap_test
}  // namespace weft::schedule
