#include "weft/schedule/passes/data_parallel.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/base/text.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace data_parallel_test {

PlanCase overlapped(PlanCase c) {
  c.distributed = c.overlap_reduce = c.overlap_gather = true;
  return c;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

TEST(DataParallel, ABucketTravelsWhenItsGradientsAreThereAndBeforeItsWeightsAreRead) {
  const PlanCase c =
      overlapped({.layers = "dm", .ep = 1, .micro_batches = 2, .tied = true, .bucket_size = 2000});
  EXPECT_TRUE(matches_golden("distributed_dp_tied.txt", print(plans_of(c)[0].training)));
}

TEST(DataParallel, WithoutOverlapItTravelsAtTheEnd) {
  const PlanCase c{.layers = "dm", .ep = 1, .micro_batches = 1, .distributed = true};
  const Graph graph = plans_of(c)[0].training;
  std::vector<std::string> end;
  for (std::size_t i = find(graph, "W0.embed") + 1; i < graph.entries.size(); ++i) {
    end.push_back(print(graph.entries[i].node));
  }
  EXPECT_EQ(joined(end),
            "reduce.expert\nreduce.dense\nnorm\ntotals\nclip\noptimizer\ngather.expert\n"
            "gather.dense");
}

TEST(DataParallel, BucketsHaveEveryPieceWithWeights) {
  for (const auto& [c, plans] : many_plans()) {
    if (!c.overlap_gather) continue;
    for (const RankPlan& plan : plans) {
      std::set<PieceAt> held, wanted;
      for (const BucketAnatomy& bucket : plan.anatomy.buckets) {
        held.insert(bucket.pieces.begin(), bucket.pieces.end());
      }
      for (const Entry& entry : plan.training.entries) {
        const Node& node = entry.node;
        if (node.direction == Direction::W) wanted.insert({node.layer, node.piece});
      }
      EXPECT_EQ(held, wanted) << name(c);
    }
  }
}

// Number of entries of a piece before the rank's first compute, and in total.
std::pair<int, int> before_compute(const Graph& graph, Piece piece) {
  int before = 0, all = 0;
  bool computes = false;
  for (const Entry& entry : graph.entries) {
    computes = computes || entry.lane == Lane::Compute;
    if (entry.node.piece != piece) continue;
    ++all;
    if (!computes) ++before;
  }
  return {before, all};
}

// All gathers: the model has only two chunks.
TEST(DataParallel, AlignedGathersSetOutWithTheStepOnAllStages) {
  PlanCase c =
      overlapped({.layers = "mmmm", .pp = 2, .vpp = 2, .overlap_p2p = true, .bucket_size = 2000});
  const auto [ahead, gathers] = before_compute(plans_of(c)[0].training, Piece::Gather);
  EXPECT_LT(ahead, gathers) << "each when the one before it is read";
  c.align_gather = true;
  for (const RankPlan& plan : plans_of(c)) {
    const auto [before, all] = before_compute(plan.training, Piece::Gather);
    EXPECT_GT(all, 1);
    EXPECT_EQ(before, all);
  }
}

// A lane's first receive is posted with the step, for inputs and for gradients.
TEST(PointToPoint, TheFirstReceivesSetOutWithTheStepWhereAsked) {
  PlanCase c{.layers = "mmmm", .pp = 2, .vpp = 2, .overlap_p2p = true};
  const std::vector<RankPlan> in_place = plans_of(c);
  c.flush = true;
  const std::vector<RankPlan> at_once = plans_of(c);
  for (std::size_t rank = 0; rank < at_once.size(); ++rank) {
    const auto [before, all] = before_compute(at_once[rank].training, Piece::Receive);
    EXPECT_GT(before, before_compute(in_place[rank].training, Piece::Receive).first) << rank;
    EXPECT_EQ(before, 2) << rank;
    EXPECT_GT(all, before) << rank;
  }
}

TEST(DataParallel, AReductionWithoutItsWaitAndAGatherTooLateAreFound) {
  const PlanCase c = overlapped({.layers = "dm", .ep = 1, .micro_batches = 2, .bucket_size = 2000});
  RankPlan plan = plans_of(c)[0];
  Graph graph = plan.training;
  graph.entries[find(graph, "reduce.dense#0")].waits.clear();
  const auto complaints = [&] {
    return joined(
        sentences(verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training)));
  };
  EXPECT_NE(complaints().find("reduce.dense#0 may start before W1.head is over"), std::string::npos)
      << complaints();
  graph = plan.training;
  graph.entries[find(graph, "F0.embed")].waits.clear();
  EXPECT_NE(complaints().find("F0.embed may start before gather.dense#"), std::string::npos)
      << complaints();
}

TEST(DataParallel, OnlyTheFirstStagesFirstChunkIsCut) {
  const PlanCase c = overlapped({.layers = "mmmm",
                                 .ep = 1,
                                 .pp = 2,
                                 .vpp = 2,
                                 .micro_batches = 2,
                                 .overlap_p2p = true,
                                 .bucket_size = 1});
  const std::vector<RankPlan> plans = plans_of(c);
  const auto buckets = [&](int rank, int chunk) {
    return std::ranges::count_if(plans[static_cast<std::size_t>(rank)].anatomy.buckets,
                                 [&](const BucketAnatomy& bucket) {
                                   return bucket.chunk == chunk && bucket.part == Part::Dense;
                                 });
  };
  EXPECT_GT(buckets(0, 0), 3);
  EXPECT_EQ(buckets(0, 1), 1);
  EXPECT_EQ(buckets(1, 0), 1);
  EXPECT_EQ(buckets(1, 1), 1);
}

TEST(DataParallel, TheFirstChunksWeightsAreGatheredUnderTheOptimizer) {
  PlanCase c = overlapped(
      {.layers = "mmmm", .ep = 1, .pp = 2, .vpp = 2, .micro_batches = 2, .overlap_p2p = true});
  c.gather_under_optimizer = true;
  const Graph graph = plans_of(c)[0].training;
  EXPECT_TRUE(run_together(graph, "optimizer#1", "gather.dense#1"));
  EXPECT_FALSE(run_together(graph, "optimizer#0", "gather.dense#1"));
}

}  // namespace data_parallel_test
}  // namespace weft::schedule
