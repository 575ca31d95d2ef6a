#include "weft/schedule/verify.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/schedule/models_support.h"
#include "weft/base/text.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace verify_test {

// Small expert-parallel step with all kinds of nodes.
class Verify : public ::testing::Test {
 protected:
  static constexpr int kMicroBatches = 2;

  std::vector<std::string> complaints(const Graph& graph) const {
    return sentences(verify(graph, anatomy_, kMicroBatches, StepKind::Training));
  }

  const Anatomy anatomy_ = describe(tied_model_of("dm", 2), kEverySum);
  const Graph graph_ = build_training(anatomy_, {.micro_batches = kMicroBatches});
};

TEST_F(Verify, EachRemovedNodeIsMissing) {
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    const std::string node = print(graph_.entries[i].node);
    EXPECT_EQ(complaints(without_entry(graph_, i)), std::vector{node + " is missing"});
  }
}

TEST_F(Verify, EachDoubledNodeIsIssuedTwice) {
  for (const Entry& entry : graph_.entries) {
    Graph graph = graph_;
    graph.entries.push_back(entry);
    EXPECT_EQ(complaints(graph), std::vector{print(entry.node) + " is issued twice"});
  }
}

TEST_F(Verify, AForeignNodeDoesNotBelong) {
  for (const std::string node : {"0F0.route",
                                 "2F0.attention",
                                 "0F2.attention",
                                 "F0.attention",
                                 "0R0.attention",
                                 "D0.embed",
                                 "1W0.permute",
                                 "1F0.experts.fc1",
                                 "0F0.attention#0",
                                 "c0F0.send",
                                 "gather"}) {
    Graph graph = graph_;
    graph.entries.push_back({.node = parse_node(node), .lane = Lane::Compute, .waits = {}});
    EXPECT_EQ(complaints(graph), std::vector{node + " does not belong to this step"});
  }
}

TEST_F(Verify, AStepOfAnotherLengthIsNotThisOne) {
  EXPECT_TRUE(
      contains(verify(graph_, anatomy_, 3, StepKind::Training), "0F2.attention is missing"));
  EXPECT_TRUE(contains(verify(graph_, anatomy_, 1, StepKind::Training),
                       "0F1.attention does not belong to this step"));
  EXPECT_TRUE(contains(verify(graph_, anatomy_, kMicroBatches, StepKind::ForwardOnly),
                       "D0.head does not belong to this step"));
}

TEST_F(Verify, AWaitForALaterEntryIsReported) {
  const int size = static_cast<int>(graph_.entries.size());
  for (const int wait : {-1, 4, 5, size, 1 << 30}) {
    Graph graph = graph_;
    graph.entries[4].waits = {wait};
    EXPECT_TRUE(contains(complaints(graph),
                         base::text("{} waits for entry {}, which is not issued before it",
                                    print(graph.entries[4].node),
                                    wait)));
  }
}

TEST_F(Verify, ANodeOnAnotherLaneIsReported) {
  Graph graph = graph_;
  graph.entries[find(graph, "1F0.dispatch")].lane = Lane::Dp;
  EXPECT_TRUE(contains(complaints(graph), "1F0.dispatch is on lane dp, but its lane is ep"));
}

// Every wait that the builder writes is needed; none is implied by others.
TEST_F(Verify, EachRemovedWaitIsReported) {
  int removed = 0;
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    for (const int wait : graph_.entries[i].waits) {
      Graph graph = graph_;
      std::erase(graph.entries[i].waits, wait);
      const auto first = static_cast<std::size_t>(wait);
      EXPECT_FALSE(Reach(graph).before(first, i)) << print(graph_.entries[i].node);
      EXPECT_TRUE(contains(complaints(graph), print(graph.entries[i].node) + " may start before"));
      ++removed;
    }
  }
  EXPECT_GT(removed, 20);
}

// Expected complaints of verify about a graph whose waits all point back, computed by reachability.
std::set<std::string> broken_needs(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  std::set<std::string> broken;
  const Reach reach(graph);
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    for (const Node& need : required(anatomy, node, micro_batches, StepKind::Training)) {
      if (reach.before(find(graph, print(need)), i)) continue;
      broken.insert(base::text("{} may start before {} is over", print(node), print(need)));
    }
  }
  return broken;
}

bool has_wait_for_later(const Graph& graph) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    for (const int wait : graph.entries[i].waits) {
      if (wait >= static_cast<int>(i)) return true;
    }
  }
  return false;
}

TEST_F(Verify, SwappedNeighboursAreReportedExactlyWhenANeedBreaks) {
  int harmless = 0, wrong_wait = 0, broken = 0;
  for (std::size_t i = 0; i + 1 < graph_.entries.size(); ++i) {
    const Graph graph = with_swapped(graph_, i);
    const std::vector<std::string> found = complaints(graph);
    const std::string swapped =
        print(graph_.entries[i].node) + " and " + print(graph_.entries[i + 1].node);
    if (has_wait_for_later(graph)) {
      EXPECT_TRUE(contains(found, "which is not issued before it")) << swapped;
      ++wrong_wait;
      continue;
    }
    const std::set<std::string> expected = broken_needs(graph, anatomy_, kMicroBatches);
    EXPECT_EQ(std::set(found.begin(), found.end()), expected) << swapped;
    ++(expected.empty() ? harmless : broken);
  }
  EXPECT_GT(harmless, 0);
  EXPECT_GT(wrong_wait, 0);
  EXPECT_GT(broken, 0);
}

TEST_F(Verify, WeightGradientsOutOfMicroBatchOrderAreReported) {
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    const Node late = graph_.entries[i].node;
    if (late.direction != Direction::W || late.micro_batch != 1) continue;
    Node early = late;
    early.micro_batch = 0;
    Graph graph = graph_;
    std::swap(graph.entries[i].node, graph.entries[find(graph, print(early))].node);
    EXPECT_TRUE(contains(complaints(graph),
                         base::text("{} may start before {} is over", print(late), print(early))));
  }
}

TEST_F(Verify, AllThatIsWrongIsReportedAtOnce) {
  Graph graph = without_entry(graph_, find(graph_, "1F0.route"));
  graph = without_entry(graph, find(graph, "norm"));
  graph.entries.push_back(graph.entries.front());
  const std::vector<std::string> found = complaints(graph);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_TRUE(contains(found, "1F0.route is missing"));
  EXPECT_TRUE(contains(found, "norm is missing"));
  EXPECT_TRUE(contains(found, "F0.embed is issued twice"));
}

}  // namespace verify_test
}  // namespace weft::schedule
