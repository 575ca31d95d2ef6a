#include "weft/exec/real/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <random>

#include "tests/exec/real/toy_support.h"

namespace weft::exec {
namespace executor_test {

using schedule::Entry;
using schedule::Graph;
using schedule::Lane;
using schedule::Piece;

// Entry i is layer i, so that bodies know their entry.
Graph random_graph(std::mt19937& random) {
  constexpr std::array
      kLanes{Lane::Compute, Lane::Compute, Lane::Ep, Lane::Ep, Lane::Dp, Lane::Copy, Lane::CopyIn};
  Graph graph;
  for (int i = 0; i < 60; ++i) {
    Entry entry{.node = {.layer = i, .piece = Piece::Mlp},
                .lane = random() % 12 == 0 ? Lane::Host : kLanes[random() % kLanes.size()],
                .waits = {}};
    for (int wait = 0; wait < i; ++wait) {
      if (random() % 20 == 0) entry.waits.push_back(wait);
    }
    graph.entries.push_back(std::move(entry));
  }
  return graph;
}

// Value of entry i, from the values that it waits for.
long combine(const Graph& graph, const std::vector<long>& values, std::size_t i) {
  long value = static_cast<long>(i) + 1;
  for (const int wait : graph.entries[i].waits) {
    value = value * 31 + values[static_cast<std::size_t>(wait)];
  }
  return value;
}

// Values are plain memory: a missing wait is a wrong value, or a race that a sanitizer detects.
TEST(Executor, WaitsHoldWhateverTheDelays) {
  std::mt19937 random(17);
  for (int round = 0; round < 8; ++round) {
    Toy toy(random_graph(random));
    const std::size_t n = toy.graph().entries.size();
    std::vector<long> expected(n, 0), values(n, 0);
    for (std::size_t i = 0; i < n; ++i) expected[i] = combine(toy.graph(), expected, i);
    toy.executor().run(
        [&](const schedule::Node& node, tensor::Stream& stream) {
          const auto i = static_cast<std::size_t>(node.layer);
          const int delay = static_cast<int>(random() % 300);
          const auto work = [&toy, &values, i, delay] {
            sleep_us(delay);
            values[i] = combine(toy.graph(), values, i);
          };
          if (toy.graph().entries[i].lane == Lane::Host) return work();
          enqueue(stream, work);
        },
        Tracing::Off);
    EXPECT_EQ(values, expected) << print(toy.graph());
  }
}

TEST(Executor, ALaneRunsItsNodesAsIssued) {
  std::mt19937 random(23);
  Toy toy(random_graph(random));
  std::array<std::vector<int>, schedule::kLanes> ran, expected;
  for (const Entry& entry : toy.graph().entries) {
    expected[static_cast<std::size_t>(entry.lane)].push_back(entry.node.layer);
  }
  toy.executor().run(
      [&](const schedule::Node& node, tensor::Stream& stream) {
        const Lane lane = toy.graph().entries[static_cast<std::size_t>(node.layer)].lane;
        auto& mine = ran[static_cast<std::size_t>(lane)];
        const int delay = static_cast<int>(random() % 100);
        if (lane == Lane::Host) return mine.push_back(node.layer);
        enqueue(stream, [&mine, delay, layer = node.layer] {
          sleep_us(delay);
          mine.push_back(layer);
        });
      },
      Tracing::Off);
  EXPECT_EQ(ran, expected);
}

// Each of two tasks waits until the other has begun, which needs overlapping lanes.
TEST(Executor, LanesWithoutWaitsOverlap) {
  Toy toy("compute 0F0.experts\nep 0F0.dispatch\n");
  std::array<std::promise<void>, 2> begun;
  std::array<std::future_status, 2> met{};
  toy.run([&](const std::string& node, tensor::Stream& stream) {
    const std::size_t me = node == "0F0.experts" ? 0 : 1;
    enqueue(stream, [&, me] {
      begun[me].set_value();
      met[me] = begun[1 - me].get_future().wait_for(std::chrono::seconds(10));
    });
  });
  EXPECT_EQ(met[0], std::future_status::ready);
  EXPECT_EQ(met[1], std::future_status::ready);
}

TEST(Executor, AHostNodeWaitsAndDelaysWhatIsIssuedAfterIt) {
  Toy toy(
      "ep 0F0.counts\n"
      "compute 0F0.permute\n"
      "host 0F0.sizes < 0F0.counts\n"
      "ep 0F0.dispatch < 0F0.permute\n");
  std::promise<void> permute_issued;
  bool counted = false, sized = false;
  toy.run([&](const std::string& node, tensor::Stream& stream) {
    if (node == "0F0.counts") {
      enqueue(stream, [&] {
        // permute is issued before the host node and does not wait for it.
        permute_issued.get_future().wait_for(std::chrono::seconds(10));
        sleep_us(2000);
        counted = true;
      });
    } else if (node == "0F0.permute") {
      permute_issued.set_value();
    } else if (node == "0F0.sizes") {
      EXPECT_TRUE(counted);
      EXPECT_EQ(&stream, &toy.lanes()[Lane::Compute]);
      sized = true;
    } else {
      EXPECT_TRUE(sized);
    }
  });
  EXPECT_TRUE(sized);
}

TEST(Executor, WaitsPassThroughNodesThatEnqueueNothing) {
  Toy toy(
      "compute 0F0.experts\n"
      "ep 0F0.combine < 0F0.experts\n"
      "dp totals < 0F0.combine\n");
  int value = 0, seen = -1;
  toy.run([&](const std::string& node, tensor::Stream& stream) {
    if (node == "0F0.experts") {
      enqueue(stream, [&] {
        sleep_us(5000);
        value = 1;
      });
    } else if (node == "totals") {
      enqueue(stream, [&] { seen = value; });
    }
  });
  EXPECT_EQ(seen, 1);
}

TEST(Executor, ComputeAloneRunsInlineOnTheIssuingThread) {
  Toy alone("compute 0F0.route\nhost 0F0.sizes < 0F0.route\ncompute 0F0.experts\n");
  Toy beside("compute 0F0.route\nep 0F0.counts < 0F0.route\n");
  const auto threads_of = [](Toy& toy) {
    std::vector<std::thread::id> threads;
    toy.run([&](const std::string&, tensor::Stream& stream) {
      enqueue(stream, [&] { threads.push_back(std::this_thread::get_id()); });
    });
    return threads;
  };
  EXPECT_EQ(threads_of(alone), std::vector(3, std::this_thread::get_id()));
  const std::vector<std::thread::id> apart = threads_of(beside);
  EXPECT_EQ(std::ranges::count(apart, std::this_thread::get_id()), 0);
  EXPECT_FALSE(alone.lanes().has(Lane::Host));
  EXPECT_FALSE(alone.lanes().has(Lane::Ep));
  EXPECT_EQ(beside.lanes()[Lane::Ep].name(), "ep");
}

TEST(Executor, RunsAgainAndAgain) {
  Toy toy("compute 0F0.experts\nep 0F0.combine < 0F0.experts\ncompute 0F0.merge < 0F0.combine\n");
  long value = 0;
  for (int i = 0; i < 200; ++i) {
    toy.run([&](const std::string& node, tensor::Stream& stream) {
      const long factor = node == "0F0.combine" ? 3 : 1;
      enqueue(stream, [&value, factor] { value = (value * factor + 1) % 1000003; });
    });
  }
  long expected = 0;
  for (int i = 0; i < 200; ++i) {
    for (const long factor : {1, 3, 1}) expected = (expected * factor + 1) % 1000003;
  }
  EXPECT_EQ(value, expected);
}

}  // namespace executor_test
}  // namespace weft::exec
