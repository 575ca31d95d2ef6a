#include "weft/schedule/verify_union.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/base/text.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace verify_union_test {

std::vector<const Graph*> pointers_to(const std::vector<Graph>& graphs) {
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  return pointers;
}

std::vector<std::string> check(const std::vector<Graph>& graphs, const MembersOf& members) {
  return sentences(verify_union(pointers_to(graphs), members));
}

// Waits of the only fault of these graphs.
std::vector<std::string> circle_of(const std::vector<Graph>& graphs, const MembersOf& members) {
  const std::vector<Fault> faults = verify_union(pointers_to(graphs), members);
  if (faults.size() != 1) return {base::text("{} faults", faults.size())};
  EXPECT_TRUE(contains(faults, "wait for each other in a circle")) << faults[0].what;
  return faults[0].waits;
}

// Four ranks: ep pairs {0, 1} and {2, 3}; the other lanes have all four.
std::vector<int> pairs_of_four(int rank, const Entry& entry) {
  if (entry.lane != Lane::Ep) return {0, 1, 2, 3};
  return rank < 2 ? std::vector{0, 1} : std::vector{2, 3};
}

std::vector<int> both(int, const Entry&) { return {0, 1}; }

class VerifyUnion : public ::testing::Test {
 protected:
  // Swaps two entries of one lane on rank `rank`.
  std::vector<std::string> check_with_swap(std::size_t rank,
                                           const std::string& first,
                                           const std::string& second) const {
    std::vector<Graph> graphs(4, graph_);
    std::vector<Entry>& entries = graphs[rank].entries;
    std::swap(entries[find(graph_, first)].node, entries[find(graph_, second)].node);
    return check(graphs, pairs_of_four);
  }

  const Graph graph_ =
      build_training(describe(tied_model_of("dm", 2), kEverySum), {.micro_batches = 2});
};

TEST_F(VerifyUnion, EqualGraphsCannotDeadlock) {
  EXPECT_EQ(check(std::vector<Graph>(4, graph_), pairs_of_four), std::vector<std::string>{});
}

TEST_F(VerifyUnion, AnotherOrderOnALaneNamesRanksAndNodes) {
  EXPECT_EQ(check_with_swap(3, "1F0.counts", "1F0.dispatch"),
            std::vector<std::string>{
                "lane ep: operation 0 is 1F0.counts on rank 2 and 1F0.dispatch on rank 3"});
  EXPECT_EQ(check_with_swap(1, "reduce.expert", "reduce.dense#0"),
            std::vector<std::string>{
                "lane dp: operation 0 is reduce.expert on rank 0 and reduce.dense#0 on rank 1"});
}

TEST_F(VerifyUnion, AnyTwoNeighboursOfALaneSwappedOnOneRankAreReported) {
  for (const Lane lane : {Lane::Ep, Lane::Dp}) {
    std::string last;
    for (const Entry& entry : graph_.entries) {
      if (entry.lane != lane) continue;
      const std::string node = print(entry.node);
      if (!last.empty()) {
        const std::vector<std::string> found = check_with_swap(2, last, node);
        EXPECT_FALSE(found.empty()) << last << " and " << node;
        EXPECT_TRUE(contains(found, base::text("{} on rank 2", node))) << found.front();
      }
      last = node;
    }
  }
}

TEST_F(VerifyUnion, AMissingOperationIsReported) {
  std::vector<Graph> graphs(4, graph_);
  graphs[1] = without_entry(graph_, find(graph_, "totals"));
  EXPECT_EQ(
      check(graphs, pairs_of_four),
      std::vector<std::string>{"lane dp: operation 3 is totals on rank 0 and nothing on rank 1"});
  graphs[1] = graph_;
  graphs[0] = without_entry(graph_, find(graph_, "1D1.dispatch"));
  EXPECT_EQ(check(graphs, pairs_of_four),
            std::vector<std::string>{
                "lane ep: operation 9 is nothing on rank 0 and 1D1.dispatch on rank 1"});
}

TEST_F(VerifyUnion, GroupsApartMayDiffer) {
  std::vector<Graph> graphs(4, graph_);
  for (const std::size_t rank : {2u, 3u}) {
    std::vector<Entry>& entries = graphs[rank].entries;
    std::swap(entries[find(graph_, "1F0.counts")].node, entries[find(graph_, "1F1.counts")].node);
  }
  EXPECT_EQ(check(graphs, pairs_of_four), std::vector<std::string>{});
}

TEST(VerifyUnionCycle, TwoLanesCrossedBetweenRanks) {
  const std::vector<Graph> graphs{
      parse_graph("dp reduce.dense\nep 0F0.dispatch < reduce.dense\n"),
      parse_graph("ep 0F0.dispatch\ndp reduce.dense < 0F0.dispatch\n"),
  };
  const std::vector<std::string> circle{"rank 0: 0F0.dispatch waits for reduce.dense",
                                        "rank 1: reduce.dense waits for 0F0.dispatch"};
  EXPECT_EQ(circle_of(graphs, both), circle);
}

TEST(VerifyUnionCycle, GoesThroughLocalNodesAndNamesTheirRank) {
  const std::vector<Graph> graphs{
      parse_graph("dp totals\ncompute 0F0.experts < totals\nep 0F0.combine < 0F0.experts\n"),
      parse_graph("ep 0F0.combine\nhost 0F0.sizes < 0F0.combine\ndp totals\n"),
  };
  const std::vector<std::string> circle{
      "rank 0: 0F0.experts waits for totals",
      "rank 1: totals waits for 0F0.sizes: a host node before it",
      "rank 1: 0F0.sizes waits for 0F0.combine",
      "rank 0: 0F0.combine waits for 0F0.experts",
  };
  EXPECT_EQ(circle_of(graphs, both), circle);
}

// Rank 0 is only a victim; the message names the ranks of the cycle.
TEST(VerifyUnionCycle, TellsTheCircleFromWhatIsStuckBehindIt) {
  const std::vector<Graph> graphs{
      parse_graph("dp norm\ncompute F0.embed < norm\nep 0F0.dispatch < norm\n"),
      parse_graph("dp norm\nep 0F0.dispatch < norm\n"),
      parse_graph("ep 0F0.counts\ncp 0F0.merge < 0F0.counts\ndp norm < 0F0.merge\n"),
      parse_graph("cp 0F0.merge\nep 0F0.counts < 0F0.merge\ndp norm < 0F0.counts\n"),
  };
  const auto members = [](int rank, const Entry& entry) {
    return entry.lane == Lane::Cp && rank < 2 ? std::vector{0, 1}
           : entry.lane == Lane::Cp           ? std::vector{2, 3}
                                              : pairs_of_four(rank, entry);
  };
  const std::vector<std::string> circle{"rank 2: 0F0.merge waits for 0F0.counts",
                                        "rank 3: 0F0.counts waits for 0F0.merge"};
  EXPECT_EQ(circle_of(graphs, members), circle);
  EXPECT_EQ(check(graphs, members),
            std::vector<std::string>{"ranks 2, 3 wait for each other in a circle"});
}

TEST(VerifyUnionCycle, CrossedIssueWithoutWaitsIsFine) {
  const std::vector<Graph> graphs{
      parse_graph("dp reduce.dense\nep 0F0.dispatch\n"),
      parse_graph("ep 0F0.dispatch\ndp reduce.dense\n"),
  };
  EXPECT_EQ(check(graphs, both), std::vector<std::string>{});
}

std::vector<Fault> check_calls(const std::vector<Graph>& graphs, const MembersOf& members) {
  return verify_calls(pointers_to(graphs), members);
}

TEST_F(VerifyUnion, EveryPlanHasOneOrderOfCalls) {
  for (const auto& [c, plans] : many_plans()) {
    std::vector<Graph> training;
    for (const RankPlan& plan : plans) training.push_back(plan.training);
    const auto members = [&pipeline = plans.front().anatomy.pipeline](int rank,
                                                                      const Entry& entry) {
      return stages_of_entry(pipeline, rank, entry);
    };
    EXPECT_EQ(sentences(check_calls(training, members)), std::vector<std::string>{}) << name(c);
  }
}

// Neither rank waits for the other's lane, so the union has no cycle. A backend that runs
// collectives one after the other would deadlock on two that are called in opposite order.
TEST_F(VerifyUnion, CallsTheOtherWayRoundOnAnotherLaneAreReported) {
  std::vector<Graph> graphs(4, graph_);
  std::vector<Entry>& entries = graphs[1].entries;
  const std::size_t ep = find(graph_, "1F0.combine"), dp = find(graph_, "reduce.expert");
  EXPECT_TRUE(check_calls(graphs, pairs_of_four).empty());
  std::swap(entries[ep], entries[dp]);
  const std::vector<Fault> found = check_calls(graphs, pairs_of_four);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "ranks 0, 1 call collectives in orders that make a circle");
  const std::vector<std::string> circle{
      "rank 0: reduce.expert waits for 1D1.dispatch: the collective before it",
      "rank 1: 1D1.dispatch waits for reduce.expert: 7 collectives before it"};
  EXPECT_EQ(found[0].waits, circle);
}

// Data that a stage receives back was computed from its send. New data was sent after the previous
// gradient had been received.
TEST(SendsOver, AMessageTellsOfTheSendsBeforeIt) {
  std::vector<RankPlan> plans = plans_of({.pp = 2, .micro_batches = 4});
  for (int stage = 0; stage < 2; ++stage) note_sends_over(plans, stage);
  const auto told = [&](std::size_t stage, const std::string& receive) {
    const Graph& graph = plans[stage].training;
    std::vector<std::string> names;
    for (const int send : plans[stage].training_over[find(graph, receive)]) {
      names.push_back(print(graph.entries[static_cast<std::size_t>(send)].node));
    }
    return names;
  };
  EXPECT_EQ(told(0, "c0D0.receive"), std::vector<std::string>{"c0F0.send"});
  EXPECT_EQ(told(0, "c0D3.receive"), std::vector<std::string>{"c0F3.send"});
  EXPECT_EQ(told(1, "c1F0.receive"), std::vector<std::string>{});
  EXPECT_EQ(told(1, "c1F2.receive"), std::vector<std::string>{"c1D0.send"});
}

// Buffers for sends not known to be complete therefore do not grow with the number of
// micro-batches.
TEST(SendsOver, NoMoreSendsThanStagesAreUnknown) {
  constexpr int kStages = 4;
  std::vector<RankPlan> plans = plans_of({.pp = kStages, .micro_batches = 32});
  for (int stage = 0; stage < kStages; ++stage) {
    note_sends_over(plans, stage);
    const RankPlan& plan = plans[static_cast<std::size_t>(stage)];
    std::map<Lane, std::set<int>> unknown;
    std::size_t most = 0;
    for (std::size_t i = 0; i < plan.training.entries.size(); ++i) {
      const Lane lane = plan.training.entries[i].lane;
      if (lane == Lane::PpSendNext || lane == Lane::PpSendPrevious) {
        unknown[lane].insert(static_cast<int>(i));
      }
      for (const int send : plan.training_over[i]) {
        std::set<int>& of_lane =
            unknown[plan.training.entries[static_cast<std::size_t>(send)].lane];
        of_lane.erase(of_lane.begin(), of_lane.upper_bound(send));
      }
      for (const auto& [of, sends] : unknown) most = std::max(most, sends.size());
    }
    EXPECT_GE(most, 1u);
    EXPECT_LE(most, static_cast<std::size_t>(kStages) + 1) << "stage " << stage;
  }
}

}  // namespace verify_union_test
}  // namespace weft::schedule
