#include "weft/schedule/fault.h"

#include <gtest/gtest.h>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"
#include "weft/schedule/verify_union.h"

namespace weft::schedule {
namespace fault_test {

const PlanCase kPlain{.layers = "mm", .micro_batches = 2};
const PlanCase kTwoStages{.layers = "mm", .pp = 2, .micro_batches = 2};

// First complaint about a graph, with its picture.
std::string told(const Graph& graph, const RankPlan& plan) {
  const std::vector<std::string> complaints =
      complaints_of(verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training),
                    {&graph});
  return complaints.empty() ? "" : complaints.front();
}

Graph too_early(const RankPlan& plan) {
  return with_swapped(plan.training, find(plan.training, "0F0.attention"));
}

TEST(Fault, ANodeBeforeWhatItNeedsIsMarked) {
  const RankPlan plan = plans_of(kPlain)[0];
  EXPECT_TRUE(matches_golden("fault_early.txt", told(too_early(plan), plan)));
}

TEST(Fault, ThePageShowsThePictureOfANodeTooEarly) {
  const RankPlan plan = plans_of(kPlain)[0];
  const std::string page = base::read_text(WEFT_SOURCE_DIR "/docs/schedules.md");
  for (const std::string& line : base::split(told(too_early(plan), plan), '\n')) {
    EXPECT_NE(page.find(line + '\n'), std::string::npos) << line;
  }
}

TEST(Fault, AMissingNodeIsDrawnWhereItCanBeIssued) {
  const RankPlan plan = plans_of(kPlain)[0];
  const std::size_t entry = find(plan.training, "1F0.dispatch");
  const std::string missing = told(without_entry(plan.training, entry), plan);
  EXPECT_TRUE(matches_golden("fault_missing.txt", missing));
}

TEST(Fault, ANodeIssuedTwiceIsDrawnWithItsFirstPlace) {
  const RankPlan plan = plans_of(kPlain)[0];
  Graph graph = plan.training;
  graph.entries.push_back(graph.entries[find(graph, "0F0.experts")]);
  EXPECT_TRUE(matches_golden("fault_twice.txt", told(graph, plan)));
}

TEST(Fault, AFileIsDrawnUpToTheLineThatIssuesANodeTwice) {
  const std::string complaint =
      graph_complaint("compute F0.embed\nep 0F0.counts < F0.embed\ncompute F0.embed\n");
  EXPECT_TRUE(matches_golden("fault_line.txt", complaint));
}

TEST(Fault, MemoryThatIsStillReadIsNamed) {
  const RankPlan plan = plans_of({.layers = "d", .ep = 1, .dp = 1, .cp = 4, .micro_batches = 1})[0];
  Graph graph = plan.training;
  graph.entries[find(graph, "0F0.attention.ring#2")].waits.clear();
  EXPECT_TRUE(matches_golden("fault_race.txt", told(graph, plan)));
}

// Rank 0 waits for a gradient before it makes the output that the gradient comes from.
std::vector<Graph> circle() {
  const std::vector<RankPlan> plans = plans_of(kTwoStages);
  Graph first = without_entry(plans[0].training, find(plans[0].training, "c0D0.receive"));
  for (Entry& entry : first.entries) {
    for (int& wait : entry.waits) ++wait;
  }
  const Entry receive{.node = parse_node("c0D0.receive"), .lane = Lane::PpReceiveNext, .waits = {}};
  first.entries.insert(first.entries.begin(), receive);
  first.entries[1].waits.push_back(0);
  return {std::move(first), plans[1].training};
}

TEST(Fault, ACircleBetweenRanksIsDrawnRankByRank) {
  const std::vector<Graph> graphs = circle();
  const std::vector<const Graph*> pointers{&graphs[0], &graphs[1]};
  const derive::Pipeline pipeline = plans_of(kTwoStages)[0].anatomy.pipeline;
  const auto members = [&](int rank, const Entry& entry) {
    return stages_of_entry(pipeline, rank, entry);
  };
  const std::vector<std::string> complaints =
      complaints_of(verify_union(pointers, members), pointers);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(matches_golden("fault_circle.txt", complaints.front()));
}

TEST(Fault, OrdersThatDifferAreDrawnOnBothRanks) {
  const std::vector<Graph> graphs{parse_graph("compute F0.embed\nep 0F0.counts\nep 0F0.dispatch\n"),
                                  parse_graph("ep 0F0.dispatch\nep 0F0.counts\n")};
  const std::vector<const Graph*> pointers{&graphs[0], &graphs[1]};
  const std::vector<std::string> complaints = complaints_of(verify_union(pointers,
                                                                         [](int, const Entry&) {
                                                                           return std::vector{0, 1};
                                                                         }),
                                                            pointers);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(matches_golden("fault_orders.txt", complaints.front()));
}

// A circle through more ranks than a picture has rows.
TEST(Fault, PicturesStaySmall) {
  constexpr int kRanks = 40;
  std::vector<Graph> graphs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto collective = [&](int number) {
      return base::text("1234567F123456.attention.gather#{}", number);
    };
    graphs.push_back(parse_graph(base::text("tp {}\ntp {} < {}\n",
                                            collective(rank),
                                            collective((rank + 1) % kRanks),
                                            collective(rank))));
  }
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  const auto members = [](int, const Entry& entry) {
    const int number = entry.node.slice, before = (number + kRanks - 1) % kRanks;
    return std::vector{std::min(number, before), std::max(number, before)};
  };
  const std::vector<Fault> faults = verify_union(pointers, members);
  ASSERT_EQ(faults.size(), 1u);
  const std::vector<std::string> lines = base::split(draw(faults[0], pointers), '\n');
  EXPECT_LE(lines.size(), 28u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 120u) << line;
  EXPECT_EQ(std::ranges::count(lines, "... and 28 more ranks"), 1);
  EXPECT_EQ(std::ranges::count(lines, "... and 28 more waits"), 1);
}

}  // namespace fault_test
}  // namespace weft::schedule
