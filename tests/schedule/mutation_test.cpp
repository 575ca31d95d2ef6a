// Deletes one dependency at a time: verify must catch every deletion that lanes and other
// dependencies do not make redundant.
#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace mutation_test {

// True if all required dependencies still hold, computed the slow way.
bool still_sound(const Graph& graph, const RankPlan& plan) {
  const Reach reach(graph);
  std::map<Node, std::size_t> index;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) index[graph.entries[i].node] = i;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    for (const Node& need : required(plan.anatomy,
                                     graph.entries[i].node,
                                     plan.shape.micro_batches,
                                     StepKind::Training)) {
      if (!reach.before(index.at(need), i)) return false;
    }
  }
  return true;
}

struct Tally {
  int caught = 0, redundant = 0;
};

Tally delete_each_wait(const RankPlan& plan) {
  Tally tally;
  for (std::size_t i = 0; i < plan.training.entries.size(); ++i) {
    for (std::size_t w = 0; w < plan.training.entries[i].waits.size(); ++w) {
      Graph graph = plan.training;
      std::vector<int>& waits = graph.entries[i].waits;
      waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
      const bool complains =
          !verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training).empty();
      EXPECT_EQ(complains, !still_sound(graph, plan))
          << print(graph.entries[i].node) << " without "
          << print(
                 plan.training.entries[static_cast<std::size_t>(plan.training.entries[i].waits[w])]
                     .node);
      ++(complains ? tally.caught : tally.redundant);
    }
  }
  return tally;
}

class Mutation : public ::testing::TestWithParam<PlanCase> {};

TEST_P(Mutation, EveryDeletedWaitIsCaught) {
  const std::vector<RankPlan> plans = plans_of(GetParam());
  for (const RankPlan& plan : plans) {
    const Tally tally = delete_each_wait(plan);
    EXPECT_GT(tally.caught, 0);
    // The only waits that are not required are those of compute for batched sends.
    int sends = 0;
    for (const Entry& entry : plan.training.entries) sends += entry.node.piece == Piece::Send;
    EXPECT_LE(tally.redundant, GetParam().overlap_p2p ? 0 : sends);
  }
}

INSTANTIATE_TEST_SUITE_P(
    SmallGraphs,
    Mutation,
    ::testing::Values(
        PlanCase{.layers = "dm", .micro_batches = 2, .tied = true},
        PlanCase{.layers = "mm", .micro_batches = 2, .overlap = true},
        PlanCase{.layers = "mm", .micro_batches = 3, .overlap = true, .delay = true},
        PlanCase{.layers = "mm", .micro_batches = 2, .overlap = true, .delay = true, .early = true},
        PlanCase{.layers = "mm", .micro_batches = 2, .experts_wgrad = true},
        PlanCase{.layers = "m", .micro_batches = 2, .shared = true, .shared_overlap = true},
        PlanCase{.layers = "m", .micro_batches = 2, .slices = 3},
        PlanCase{.layers = "m", .micro_batches = 2, .overlap = true, .delay = true, .slices = 2},
        PlanCase{.layers = "m",
                 .micro_batches = 2,
                 .detail = {.split = {Piece::Experts, Piece::Attention},
                            .recomputed = {{Piece::Experts, Part::Act}, Piece::Route}}},
        PlanCase{.layers = "mm", .pp = 2, .micro_batches = 2, .tied = true},
        PlanCase{.layers = "mmmm",
                 .pp = 2,
                 .vpp = 2,
                 .micro_batches = 2,
                 .overlap = true,
                 .delay = true,
                 .overlap_p2p = true}));

}  // namespace mutation_test
}  // namespace weft::schedule
