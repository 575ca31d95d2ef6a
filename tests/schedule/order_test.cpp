#include <gtest/gtest.h>

#include <random>

#include "tests/schedule/models_support.h"
#include "weft/base/error.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace order_test {

Graph random_graph(std::mt19937& random, int lanes, unsigned wait_chance) {
  Graph graph;
  for (int i = 0; i < 50; ++i) {
    Entry entry{.node = {.layer = i, .piece = Piece::Mlp}, .lane = Lane::Host, .waits = {}};
    // The host orders everything after it, so it is rare; otherwise few pairs stay unordered.
    if (random() % 20 != 0) entry.lane = static_cast<Lane>(random() % static_cast<unsigned>(lanes));
    for (int wait = 0; wait < i; ++wait) {
      if (random() % wait_chance == 0) entry.waits.push_back(wait);
    }
    graph.entries.push_back(std::move(entry));
  }
  return graph;
}

void expect_equal(const Order& order, const Graph& graph) {
  const Reach reach(graph);
  const int n = static_cast<int>(graph.entries.size());
  for (int first = 0; first < n; ++first) {
    for (int second = 0; second < n; ++second) {
      if (first == second) continue;
      ASSERT_EQ(order.before(first, second),
                reach.before(static_cast<std::size_t>(first), static_cast<std::size_t>(second)))
          << first << " before " << second << " in\n"
          << print(graph);
    }
  }
}

TEST(Order, BeforeIsReachabilityOnRandomGraphs) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_graph(random, 1 + round % kLanes, 10 + random() % 200);
    expect_equal(Order(graph), graph);
  }
}

TEST(Order, BeforeIsReachabilityOnTheBuildersGraph) {
  const Graph graph =
      build_training(describe(tied_model_of("dm", 2), kEverySum), {.micro_batches = 2});
  expect_equal(Order(graph), graph);
}

TEST(Order, BeforeNextIsBeforeOnceAppended) {
  std::mt19937 random(6);
  const Graph graph = random_graph(random, 4, 40);
  Order order;
  std::vector<std::vector<bool>> foretold;
  for (const Entry& entry : graph.entries) {
    std::vector<bool>& row = foretold.emplace_back();
    for (int first = 0; first + 1 < static_cast<int>(foretold.size()); ++first) {
      row.push_back(order.before_next(first, entry.lane, entry.waits));
    }
    order.append(entry);
    for (std::size_t first = 0; first < row.size(); ++first) {
      EXPECT_EQ(row[first],
                order.before(static_cast<int>(first), static_cast<int>(foretold.size()) - 1));
    }
  }
}

TEST(Order, RunsBesideIsNeitherBeforeNorAfter) {
  std::mt19937 random(7);
  int beside = 0, alone = 0;
  for (int round = 0; round < 120; ++round) {
    const Graph graph = random_graph(random, 2 + round % 4, 3 + random() % 60);
    const Order order(graph);
    const int n = static_cast<int>(graph.entries.size());
    const auto lane_of = [&](int i) { return graph.entries[static_cast<std::size_t>(i)].lane; };
    for (int entry = 0; entry < n; ++entry) {
      if (lane_of(entry) == Lane::Compute) continue;
      bool any = false;
      for (int other = 0; other < n; ++other) {
        any = any || (lane_of(other) == Lane::Compute && !order.before(entry, other) &&
                      !order.before(other, entry));
      }
      ASSERT_EQ(order.runs_beside(entry, Lane::Compute), any) << entry << " in\n" << print(graph);
      ++(any ? beside : alone);
    }
  }
  EXPECT_GT(beside, 100);
  EXPECT_GT(alone, 100);
}

TEST(Order, WhatFollowsAHostNodeFollowsWhatItWaitedFor) {
  const Graph graph = parse_graph(
      "compute F0.embed\n"
      "ep 0F0.counts\n"
      "host 0F0.sizes < 0F0.counts\n"
      "dp totals\n");
  const Order order(graph);
  EXPECT_TRUE(order.before(1, 3));
  EXPECT_TRUE(order.before(2, 3));
  EXPECT_FALSE(order.before(0, 3)) << "the host did not wait for the compute lane";
  EXPECT_FALSE(order.before(0, 2));
}

TEST(Order, AWaitForALaterEntryIsOurBug) {
  Order order;
  EXPECT_THROW(order.append({.node = {}, .lane = Lane::Compute, .waits = {0}}),
               base::InternalError);
}

}  // namespace order_test
}  // namespace weft::schedule
