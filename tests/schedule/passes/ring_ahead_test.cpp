#include "weft/schedule/passes/ring_ahead.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"

namespace weft::schedule {
namespace ring_ahead_test {

const PlanCase kRing{.layers = "d", .ep = 1, .dp = 1, .cp = 4, .micro_batches = 1};

std::string of(const std::string& way, const std::string& part, int step) {
  return "0" + way + "0.attention." + part + "#" + std::to_string(step);
}

TEST(RingAhead, KeysTravelUnderTheAttentionBeforeTheirs) {
  const Graph graph = plans_of(kRing)[0].training;
  for (int step = 1; step < 4; ++step) {
    EXPECT_TRUE(run_together(graph, of("F", "ring", step), of("F", "core", step - 1))) << step;
  }
  for (int step = 1; step < 3; ++step) {
    EXPECT_TRUE(run_together(graph, of("R", "ring", step), of("D", "core", step + 1))) << step;
  }
}

TEST(RingAhead, GradientsGoHomeUnderTheNextStepBack) {
  const Graph graph = plans_of(kRing)[0].training;
  for (int step = 1; step < 4; ++step) {
    EXPECT_TRUE(run_together(graph, of("D", "ring", step), of("D", "core", step - 1))) << step;
  }
}

TEST(RingAhead, InThePlainOrderNothingTravelsBesideCompute) {
  PlanCase plain = kRing;
  plain.cp_overlap = false;
  for (const config::CpComm comm : {config::CpComm::P2p, config::CpComm::AllToAllP2p}) {
    plain.cp_comm = comm;
    const Graph graph = plans_of(plain)[0].training;
    int exchanges = 0;
    for (const Entry& exchange : graph.entries) {
      if (exchange.lane != Lane::Cp) continue;
      ++exchanges;
      for (const Entry& entry : graph.entries) {
        if (entry.lane != Lane::Compute) continue;
        EXPECT_FALSE(run_together(graph, print(exchange.node), print(entry.node)))
            << print(exchange.node) << " beside " << print(entry.node);
      }
    }
    EXPECT_GT(exchanges, 3);
  }
}

TEST(RingAhead, KeysThatAreNotReadYetAreOfTwoStepsAtMost) {
  const Graph graph = plans_of(kRing)[0].training;
  EXPECT_LT(find(graph, of("F", "core", 0)), find(graph, of("F", "ring", 2)));
  EXPECT_LT(find(graph, of("F", "core", 1)), find(graph, of("F", "ring", 3)));
  EXPECT_LT(find(graph, of("D", "core", 3)), find(graph, of("R", "ring", 1)));
}

TEST(RingAhead, OfHeadsAndRingOnlyTheOuterRanksHaveSteps) {
  PlanCase both = kRing;
  both.cp_comm = config::CpComm::AllToAllP2p;
  const RankPlan plan = plans_of(both)[0];
  std::string parts;
  for (const Entry& entry : plan.training.entries) {
    if (entry.node.piece != Piece::Attention || entry.node.direction != Direction::F) continue;
    parts += std::string(word(entry.node.part));
    parts += entry.node.slice == kNone ? " " : "#" + std::to_string(entry.node.slice) + " ";
  }
  EXPECT_EQ(parts, "norm qkv heads arrange ring#1 core#0 core#1 tokens proj add ");
}

}  // namespace ring_ahead_test
}  // namespace weft::schedule
