// Whole layers recomputed in groups: only the first of a group keeps its input.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/passes/recompute.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace grouped_layers_test {

Detail groups_of(int layers) {
  return {.split = {Piece::Attention, Piece::Route, Piece::Experts, Piece::Mlp},
          .recomputed = {Piece::Attention,
                         {Piece::Route, Part::Norm},
                         {Piece::Route, Part::Choose},
                         Piece::Permute,
                         Piece::Dispatch,
                         {Piece::Experts, Part::Arrange},
                         {Piece::Experts, Part::Fc1},
                         {Piece::Experts, Part::Act},
                         {Piece::Mlp, Part::Norm},
                         {Piece::Mlp, Part::Fc1},
                         {Piece::Mlp, Part::Act}},
          .recomputed_group = layers};
}

RankPlan plan_of(int layers) {
  return plans_of({.layers = "dmmmdm", .micro_batches = 1, .detail = groups_of(layers)})[0];
}

bool has(const Graph& graph, const std::string& node) {
  return std::ranges::any_of(graph.entries,
                             [&](const Entry& entry) { return print(entry.node) == node; });
}

TEST(GroupedLayers, MakeTheirInputsAgainFromTheFirstOnes) {
  const Graph graph = plan_of(3).training;  // layers 0 1 2 and 3 4 5
  for (const char* again : {"0R0.mlp.add", "1R0.merge", "1R0.combine", "1R0.experts.fc2"}) {
    EXPECT_TRUE(has(graph, again)) << again;
  }
  for (const char* kept : {"2R0.merge", "2R0.experts.fc2", "5R0.merge"}) {
    EXPECT_FALSE(has(graph, kept)) << kept;
  }
  EXPECT_LT(find(graph, "0R0.mlp.add"), find(graph, "1R0.attention.norm"));
  EXPECT_LT(find(graph, "1R0.merge"), find(graph, "2R0.attention.norm"));
  EXPECT_LT(find(graph, "2R0.experts.act"), find(graph, "2D0.experts.fc2"));
  // No group is recomputed before it is needed.
  EXPECT_LT(find(graph, "3D0.attention.norm"), find(graph, "0R0.mlp.add"));
}

TEST(GroupedLayers, KeepFewerInputs) {
  const Load load{.tokens = 64, .rows = 128};
  const auto kept_at_the_turn = [&](int layers) {
    const RankPlan plan = plan_of(layers);
    return kept_after_each(plan.training, plan.anatomy, [&](const Node&) {
      return load;
    })[find(plan.training, "5F0.merge")];
  };
  const RankPlan plan = plan_of(1);
  const std::int64_t input = plan.anatomy.layers[1].back().output.of(load);
  EXPECT_GT(input, 0);
  // Among layers 1 to 5, two inputs stay with groups of two, and one with groups of three.
  EXPECT_EQ(kept_at_the_turn(1) - kept_at_the_turn(2), 3 * input);
  EXPECT_EQ(kept_at_the_turn(1) - kept_at_the_turn(3), 4 * input);
}

TEST(GroupedLayers, EveryOrderWithThemIsRight) {
  for (PlanCase c : some_cases(7)) {
    if (c.layers.find('m') == std::string::npos || c.layers.find('d') == std::string::npos) {
      continue;
    }
    c.detail = groups_of(2);
    EXPECT_EQ(verify_plan(plans_of(c)), std::vector<std::string>()) << name(c);
  }
}

}  // namespace grouped_layers_test
}  // namespace weft::schedule
