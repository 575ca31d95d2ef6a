#include "weft/schedule/anatomy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/schedule/models_support.h"
#include "weft/base/text.h"
#include "weft/schedule/census.h"
#include "weft/schedule/dependencies.h"

namespace weft::schedule {
namespace anatomy_test {

struct Need {
  std::string node;
  std::vector<std::string> needs;
};

void expect_needs(const Anatomy& anatomy, StepKind kind, const std::vector<Need>& facts) {
  for (const Need& fact : facts) {
    std::set<std::string> found;
    for (const Node& need : required(anatomy, parse_node(fact.node), 2, kind)) {
      found.insert(print(need));
    }
    EXPECT_EQ(found, std::set(fact.needs.begin(), fact.needs.end())) << fact.node;
  }
}

TEST(Anatomy, ForwardNeedsFollowTheBlock) {
  expect_needs(describe(model_of("dm", 2), kAlone),
               StepKind::Training,
               {{"F1.embed", {}},
                {"0F1.attention", {"F1.embed"}},
                {"0F1.mlp", {"0F1.attention"}},
                {"1F1.attention", {"0F1.mlp"}},
                {"1F1.route", {"1F1.attention"}},
                {"1F1.counts", {"1F1.route"}},
                {"1F1.sizes", {"1F1.counts"}},
                {"1F1.permute", {"1F1.route"}},
                {"1F1.dispatch", {"1F1.permute", "1F1.sizes"}},
                {"1F1.experts", {"1F1.dispatch"}},
                {"1F1.combine", {"1F1.experts"}},
                {"1F1.merge", {"1F1.combine"}},
                {"F1.head", {"1F1.merge"}}});
}

TEST(Anatomy, InputGradientsNeedTheirForwardAndWhatFollowedIt) {
  expect_needs(describe(model_of("dm", 2), kAlone),
               StepKind::Training,
               {{"D1.head", {"F1.head"}},
                {"1D1.merge", {"1F1.merge", "D1.head"}},
                {"1D1.combine", {"1F1.combine", "1D1.merge"}},
                {"1D1.experts", {"1F1.experts", "1D1.combine"}},
                {"1D1.dispatch", {"1F1.dispatch", "1D1.experts"}},
                {"1D1.permute", {"1F1.permute", "1D1.dispatch"}},
                {"1D1.route", {"1F1.route", "1F1.counts", "1D1.permute"}},
                {"1D1.attention", {"1F1.attention", "1D1.route"}},
                {"0D1.mlp", {"0F1.mlp", "1D1.attention"}},
                {"0D1.attention", {"0F1.attention", "0D1.mlp"}}});
}

TEST(Anatomy, WeightGradientsNeedTheirInputGradientAndTheEarlierMicroBatch) {
  expect_needs(describe(model_of("dm", 2), kAlone),
               StepKind::Training,
               {{"W0.head", {"D0.head"}},
                {"W1.head", {"D1.head", "W0.head"}},
                {"1W0.experts", {"1D0.experts"}},
                {"1W1.experts", {"1D1.experts", "1W0.experts"}},
                {"0W1.attention", {"0D1.attention", "0W0.attention"}},
                {"W1.embed", {"0D1.attention", "W0.embed"}}});
}

const std::vector<std::string> kDenseGradients{"0W1.attention",
                                               "0W1.mlp",
                                               "1W1.attention",
                                               "1W1.route",
                                               "W1.embed",
                                               "W1.head"};

TEST(Anatomy, TheStepEndsBehindTheLastGradientOfEveryWeight) {
  expect_needs(describe(model_of("dm", 2), kEverySum),
               StepKind::Training,
               {{"reduce.dense", kDenseGradients},
                {"reduce.expert", {"1W1.experts"}},
                {"norm", {"reduce.dense", "reduce.expert"}},
                {"totals", {"norm"}},
                {"clip", {"totals"}},
                {"optimizer", {"clip"}}});
  std::vector<std::string> all = kDenseGradients;
  all.push_back("1W1.experts");
  expect_needs(describe(model_of("dm", 1), kAlone),
               StepKind::Training,
               {{"norm", all}, {"clip", {"norm"}}});
}

TEST(Anatomy, SharedExpertsStandBetweenRouteAndMerge) {
  config::ModelConfig model = model_of("dm", 2);
  model.moe_shared_expert_intermediate_size = 64;
  std::vector<std::string> dense = kDenseGradients;
  dense.insert(dense.end(), {"1W1.shared.fc1", "1W1.shared.fc2"});
  expect_needs(describe(model, kEverySum),
               StepKind::Training,
               {{"1F1.shared.fc1", {"1F1.route"}},
                {"1F1.shared.fc2", {"1F1.shared.fc1"}},
                {"1F1.merge", {"1F1.combine", "1F1.shared.fc2"}},
                {"1D1.shared.fc2", {"1F1.shared.fc2", "1D1.merge"}},
                {"1D1.shared.fc1", {"1F1.shared.fc1", "1D1.shared.fc2"}},
                {"1D1.route", {"1F1.route", "1F1.counts", "1D1.shared.fc1", "1D1.permute"}},
                {"1W1.shared.fc2", {"1D1.shared.fc2", "1W0.shared.fc2"}},
                {"reduce.dense", dense}});
}

TEST(Anatomy, SlicesMeetInRouteAndMergeAndTheirWeightGradientsAddInOrder) {
  expect_needs(describe(model_of("m", 2), kEverySum, 0, {.slices = 2}),
               StepKind::Training,
               {{"0F1.counts", {"0F1.route"}},
                {"0F1.permute#1", {"0F1.route"}},
                {"0F1.dispatch#1", {"0F1.permute#1", "0F1.sizes"}},
                {"0F1.experts#0", {"0F1.dispatch#0"}},
                {"0F1.merge", {"0F1.combine#0", "0F1.combine#1"}},
                {"0D1.combine#1", {"0F1.combine#1", "0D1.merge"}},
                {"0D1.route", {"0F1.route", "0F1.counts", "0D1.permute#0", "0D1.permute#1"}},
                {"0W1.experts#0", {"0D1.experts#0", "0W0.experts#1"}},
                {"0W1.experts#1", {"0D1.experts#1", "0W1.experts#0"}},
                {"0W0.experts#0", {"0D0.experts#0"}},
                {"reduce.expert", {"0W1.experts#1"}}});
}

TEST(Anatomy, SlicesShareAllThereIs) {
  const Anatomy anatomy = describe(model_of("m", 2), kAlone, 0, {.slices = 3});
  Node node = parse_node("0F0.experts#0");
  std::vector<std::int64_t> shares;
  for (node.slice = 0; node.slice < 3; ++node.slice)
    shares.push_back(share_of(anatomy, node, {.tokens = 10}).tokens);
  EXPECT_EQ(shares, (std::vector<std::int64_t>{3, 3, 4}));
  EXPECT_EQ(share_of(anatomy, parse_node("0F0.merge"), {.tokens = 10}).tokens, 10);
}

TEST(Anatomy, WhatIsKnownBeforehandIsNotTold) {
  config::ModelConfig model = model_of("m", 2);
  model.moe_token_dispatcher_type = config::Dispatcher::Flex;
  model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
  model.moe_expert_rank_capacity_factor = 1.5;
  EXPECT_EQ(row_counts_of(model, config::RowBudget::AsConfigured), RowCounts::Device);
  EXPECT_EQ(row_counts_of(model, config::RowBudget::Lifted), RowCounts::Host);
  expect_needs(describe(model, kAlone),
               StepKind::Training,
               {{"0F1.dispatch", {"0F1.permute", "0F1.counts"}}});
  model.moe_pad_expert_input_to_capacity = true;
  EXPECT_EQ(row_counts_of(model, config::RowBudget::Lifted), RowCounts::Device);
  model.moe_token_dispatcher_type = config::Dispatcher::AllToAll;
  EXPECT_EQ(row_counts_of(model, config::RowBudget::Lifted), RowCounts::Static);
  expect_needs(describe(model, kAlone), StepKind::Training, {{"0F1.dispatch", {"0F1.permute"}}});
}

TEST(Anatomy, OnlyTheBackwardWaitsForTheRowsAGlobalLossCounts) {
  config::ModelConfig model = model_of("m", 2);
  model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss};
  model.moe_aux_loss_coeff = {0.01};
  expect_needs(describe(model, kEverySum),
               StepKind::Training,
               {{"0F1.route", {"0F1.attention", "0F0.route"}},
                {"0F1.balance", {"0F1.route"}},
                {"0F1.dispatch", {"0F1.permute", "0F1.sizes"}},
                {"0D1.route", {"0F1.route", "0F1.counts", "0F1.balance", "0D1.permute"}}});
  const Node balance = parse_node("0F0.balance");
  EXPECT_EQ(lane_of(describe(model, kAlone), balance), Lane::Compute);
  const Anatomy four = describe(model, kEverySum, 0, {.replicas = 4});
  EXPECT_EQ(lane_of(four, balance), Lane::Dp);
  EXPECT_EQ(piece_of(four, balance).sent_forward.fixed, 2 * 3 * 8 * 8 / 4);
}

TEST(Anatomy, OnlyTheBackwardWaitsForTheRowsOfASharedMicroBatch) {
  config::ModelConfig model = model_of("m", 2);
  model.moe_router_load_balancing_type = {config::LoadBalancing::AuxLoss,
                                          config::LoadBalancing::SeqAuxLoss};
  model.moe_aux_loss_coeff = {0.01, 0.01};
  const auto has_tally = [&](const TokenFlow& flow) {
    const std::vector<Node> nodes =
        all_nodes(describe(model, kEverySum, 0, flow), 1, StepKind::Training);
    return std::ranges::find(nodes, parse_node("0F0.tally")) != nodes.end();
  };
  EXPECT_FALSE(has_tally({.replicas = 4}));
  const Anatomy shared = describe(model, kEverySum, 0, {.tp = 2, .cp = 2, .sequences = 3});
  expect_needs(shared,
               StepKind::Training,
               {{"0F1.route", {"0F1.attention"}},
                {"0F1.tally", {"0F1.route"}},
                {"0F1.dispatch", {"0F1.permute", "0F1.sizes"}},
                {"0D1.route", {"0F1.route", "0F1.counts", "0F1.tally", "0D1.permute"}}});
  const Node tally = parse_node("0F0.tally");
  EXPECT_EQ(lane_of(shared, tally), Lane::Tp);
  EXPECT_EQ(lane_of(describe(model, kEverySum, 0, {.cp = 2}), tally), Lane::Cp);
  // The micro-batch and three of its sequences, eight experts each.
  EXPECT_EQ(piece_of(shared, tally).sent_forward.fixed, 2 * 3 * (1 + 3) * 8 * 8 / 4);
  model.moe_aux_loss_coeff = {0, 0};
  EXPECT_FALSE(has_tally({.tp = 2}));
}

TEST(Anatomy, TiedGradientsAreAddedBeforeTheyAreUsed) {
  std::vector<std::string> others = kDenseGradients;
  std::erase(others, "W1.embed");
  expect_needs(describe(tied_model_of("dm", 2), kEverySum),
               StepKind::Training,
               {{"tie", {"W1.embed", "W1.head"}},
                {"reduce.dense#0", others},
                {"reduce.dense#1", {"tie", "W1.embed", "W1.head"}}});
}

TEST(Anatomy, AForwardPassEndsBehindEveryHead) {
  expect_needs(describe(model_of("dm", 2), kEverySum),
               StepKind::ForwardOnly,
               {{"totals", {"F0.head", "F1.head"}}});
}

TEST(Anatomy, OnlyWhatTravelsBetweenRanksLeavesTheComputeLane) {
  const Anatomy one = describe(model_of("m", 1), kEverySum);
  const Anatomy two = describe(model_of("m", 2), kEverySum);
  for (const std::string piece : {"counts", "dispatch", "combine"}) {
    EXPECT_EQ(lane_of(one, parse_node("0F0." + piece)), Lane::Compute);
    EXPECT_EQ(lane_of(two, parse_node("0F0." + piece)), Lane::Ep);
  }
  EXPECT_EQ(lane_of(two, parse_node("0D0.dispatch")), Lane::Ep);
  EXPECT_EQ(lane_of(two, parse_node("0F0.sizes")), Lane::Host);
  EXPECT_EQ(lane_of(two, parse_node("0W0.experts")), Lane::Compute);
  EXPECT_EQ(lane_of(two, parse_node("reduce.dense")), Lane::Dp);
  EXPECT_EQ(lane_of(two, parse_node("clip")), Lane::Host);
}

TEST(Anatomy, EveryNeedIsANodeOfTheSameStep) {
  for (const std::string layers : {"d", "m", "dm", "mmd"}) {
    for (const ReductionScope& sums : {kAlone, kEverySum}) {
      for (const StepKind kind : {StepKind::Training, StepKind::ForwardOnly}) {
        const Anatomy anatomy = describe(tied_model_of(layers, 2), sums);
        const std::vector<Node> nodes = all_nodes(anatomy, 3, kind);
        const std::set<Node> known(nodes.begin(), nodes.end());
        EXPECT_EQ(known.size(), nodes.size());
        for (const Node& node : nodes) {
          for (const Node& need : required(anatomy, node, 3, kind)) {
            EXPECT_TRUE(known.contains(need)) << print(node) << " needs " << print(need);
          }
        }
      }
    }
  }
}

}  // namespace anatomy_test
}  // namespace weft::schedule
