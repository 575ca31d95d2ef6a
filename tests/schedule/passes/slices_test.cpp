#include "weft/schedule/passes/slices.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"

namespace weft::schedule {
namespace slices_test {

TEST(Slices, NeighboursTravelWhileASliceIsWithItsExperts) {
  const Graph graph = plans_of({.layers = "m", .micro_batches = 1, .slices = 3})[0].training;
  for (const char way : {'F', 'D'}) {
    const std::string there = way == 'F' ? "dispatch" : "combine";
    const std::string back = way == 'F' ? "combine" : "dispatch";
    const auto node = [&](const std::string& piece, int slice) {
      return "0" + std::string(1, way) + "0." + piece + "#" + std::to_string(slice);
    };
    for (int i = 0; i + 1 < 3; ++i) {
      EXPECT_TRUE(run_together(graph, node(there, i + 1), node("experts", i))) << way << i;
      EXPECT_TRUE(run_together(graph, node(back, i), node("experts", i + 1))) << way << i;
    }
  }
}

TEST(Slices, InTheInterleavedOrderTheyAreStaggeredByTheirLanes) {
  const PlanCase c{.layers = "mm", .micro_batches = 2, .overlap = true, .slices = 2};
  const Graph graph = plans_of(c)[0].training;
  for (const std::string layer : {"0", "1"}) {
    EXPECT_TRUE(run_together(graph, layer + "F1.dispatch#1", layer + "F1.experts#0"));
    EXPECT_TRUE(run_together(graph, layer + "F1.combine#0", layer + "F1.experts#1"));
    EXPECT_TRUE(run_together(graph, layer + "D0.combine#1", layer + "D0.experts#0"));
  }
  EXPECT_TRUE(run_together(graph, "0F1.dispatch#0", "1D0.experts#1"))
      << "the other micro-batch covers as before";
}

TEST(Slices, WhereNoTokensTravelNothingIsCut) {
  for (const PlanCase& c : {PlanCase{.layers = "mdm", .micro_batches = 2},
                            PlanCase{.layers = "mdm", .ep = 1, .micro_batches = 2, .slices = 4}}) {
    const RankPlan plan = plans_of(c)[0];
    EXPECT_EQ(plan.anatomy.flow.slices, 1);
    for (const Entry& entry : plan.training.entries) EXPECT_EQ(entry.node.slice, kNone);
  }
}

}  // namespace slices_test
}  // namespace weft::schedule
