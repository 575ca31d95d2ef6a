#include "weft/schedule/passes/snapshot.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/derive/derived.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace snapshot_test {

std::vector<RankPlan> saving_plans(const PlanCase& c) {
  config::Config config = config_of(c);
  config.checkpoint.save = "somewhere";
  config.checkpoint.async_save = true;
  return plan_step(config,
                   grid::Grid(derive::layout_of(config)),
                   config::RowBudget::AsConfigured,
                   c.detail);
}

PlanCase gathering() {
  return {.layers = "dm",
          .ep = 1,
          .micro_batches = 2,
          .distributed = true,
          .overlap_reduce = true,
          .overlap_gather = true,
          .bucket_size = 2000};
}

TEST(Snapshot, EveryOrderWithOneIsRightAndRunsIt) {
  for (const PlanCase& c : some_cases(7)) {
    const std::vector<RankPlan> plans = saving_plans(c);
    EXPECT_EQ(verify_plan(plans), std::vector<std::string>()) << name(c);
    for (const RankPlan& plan : plans) {
      const Entry& entry = plan.training.entries[find(plan.training, "snapshot")];
      EXPECT_EQ(entry.lane, Lane::Copy) << name(c);
    }
  }
}

TEST(Snapshot, RunsBesideAllThatComputesBeforeTheOptimizer) {
  const Graph graph = saving_plans({.layers = "dm", .micro_batches = 2})[0].training;
  EXPECT_EQ(find(graph, "snapshot"), 0u);
  for (const char* node : {"F0.embed", "1F0.dispatch", "W1.embed", "norm"}) {
    EXPECT_TRUE(run_together(graph, "snapshot", node)) << node;
  }
  EXPECT_FALSE(run_together(graph, "snapshot", "optimizer"));
}

TEST(Snapshot, AnOptimizerThatDoesNotWaitForItIsFound) {
  PlanCase chunks{.layers = "mmmm",
                  .ep = 1,
                  .pp = 2,
                  .vpp = 2,
                  .micro_batches = 2,
                  .overlap_p2p = true,
                  .distributed = true,
                  .overlap_reduce = true,
                  .overlap_gather = true,
                  .gather_under_optimizer = true};
  const std::vector<std::pair<PlanCase, std::string>> cases{{PlanCase{}, "optimizer"},
                                                            {gathering(), "optimizer"},
                                                            {chunks, "optimizer#0"}};
  for (const auto& [c, optimizer] : cases) {
    const RankPlan plan = saving_plans(c)[0];
    Graph graph = plan.training;
    const int snapshot = static_cast<int>(find(graph, "snapshot"));
    int removed = 0;
    for (Entry& entry : graph.entries)
      removed += static_cast<int>(std::erase(entry.waits, snapshot));
    EXPECT_EQ(removed, 1);
    EXPECT_TRUE(contains(verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training),
                         optimizer + " may start before snapshot is over"))
        << name(c);
  }
}

TEST(Snapshot, ComesBehindTheGathersThatBringWeights) {
  const RankPlan plan = saving_plans(gathering())[0];
  Graph graph = plan.training;
  graph.entries[find(graph, "snapshot")].waits.clear();
  EXPECT_TRUE(contains(verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training),
                       "snapshot may start before gather.dense#"));
}

TEST(Snapshot, IsOnlyWhereCheckpointsAreWrittenBesideTheRun) {
  const std::vector<RankPlan> plans = plans_of(PlanCase{});
  for (const Entry& entry : plans[0].training.entries) {
    EXPECT_NE(entry.node.piece, Piece::Snapshot);
  }
}

}  // namespace snapshot_test
}  // namespace weft::schedule
