// Compares the simulation with the slow one, on random graphs that cannot deadlock: each rank
// issues its part of one common order.
#include <gtest/gtest.h>

#include <random>

#include "tests/exec/sim/slow_support.h"
#include "tests/exec/sim/toy_support.h"

namespace weft::exec::sim {
namespace random_test {

using schedule::Direction;
using schedule::Entry;
using schedule::Lane;
using schedule::Node;
using schedule::Piece;

constexpr int kRanks = 4;

// ep pairs neighbours, dp the ranks two apart, tp has all ranks; pipelines join neighbouring ranks.
std::vector<int> members_of(int rank, const Entry& entry) {
  if (entry.lane == Lane::Ep) return {rank & ~1, rank | 1};
  if (entry.lane == Lane::Dp) return {rank & ~2, rank | 2};
  return everyone_or_neighbour(rank, entry, kRanks);
}

class RandomStep {
 public:
  // Every sixth step has only compute and host nodes.
  explicit RandomStep(std::uint32_t seed)
      : random_(seed), only_local_(seed % 6 == 5), graphs_(kRanks) {
    for (int i = 0; i < 60; ++i) add(i);
    for (const schedule::Graph& graph : graphs_) {
      step_.graphs.push_back(&graph);
      std::vector<std::int64_t>& costs = costs_ns_.emplace_back();
      for (std::size_t i = 0; i < graph.entries.size(); ++i) costs.push_back(draw(0, 9));
    }
    step_.members = members_of;
    step_.cost = [this](int rank, int entry) -> Cost {
      return {.seconds =
                  1e-9 *
                  static_cast<double>(
                      costs_ns_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(entry)])};
    };
  }

  SimulatedStep& step() { return step_; }

  void add_overheads() {
    step_.overheads = {.issue_seconds = 1e-9 * draw(0, 3),
                       .wake_seconds = 1e-9 * draw(0, 4),
                       .next_seconds = 1e-9 * draw(0, 2)};
  }
  // Every rank sends to every other, with sizes derived from the names.
  void add_wire() {
    grid::Fabric fabric = fabric_of(draw(1, 3), draw(0, 3));
    fabric.ranks_per_node = 2;
    fabric.inter = {.bytes_per_second = 0.5e9, .latency_seconds = 5e-9};
    step_.wire = Wire{fabric, [](const Node& meeting, std::span<const int> members) {
                        std::vector<grid::Transfer> transfers;
                        for (const int from : members) {
                          for (const int to : members) {
                            if (from == to) continue;
                            transfers.push_back({from, to, (meeting.micro_batch * 7 + from) % 11});
                          }
                        }
                        return transfers;
                      }};
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  void append(int rank, Node node, Lane lane) {
    std::vector<Entry>& entries = graphs_[static_cast<std::size_t>(rank)].entries;
    Entry entry{.node = node, .lane = lane, .waits = {}};
    const int count = entries.empty() ? 0 : draw(0, 2);
    for (int i = 0; i < count; ++i)
      entry.waits.push_back(draw(0, static_cast<int>(entries.size()) - 1));
    entries.push_back(std::move(entry));
  }

  void add(int i) {
    const Node node{.layer = 0, .direction = Direction::F, .micro_batch = i, .piece = Piece::Mlp};
    const int rank = draw(0, kRanks - 1);
    const int choice = draw(0, 7);
    if (only_local_) return append(rank, node, choice < 3 ? Lane::Host : Lane::Compute);
    switch (choice) {
      case 0:
        return append(rank, node, Lane::Host);
      case 1:
        return append(rank, node, Lane::Copy);
      case 2:
        return add_collective(rank, node, Lane::Ep);
      case 3:
        return add_collective(rank, node, Lane::Dp);
      case 4:
        return add_collective(rank, node, Lane::Tp);
      case 5:
        return add_pipeline(draw(0, kRanks - 2), i);
      default:
        return append(rank, node, Lane::Compute);
    }
  }

  void add_collective(int rank, const Node& node, Lane lane) {
    for (const int member : members_of(rank, {.node = node, .lane = lane}))
      append(member, node, lane);
  }

  void add_pipeline(int rank, int i) {
    const bool forward = draw(0, 1) == 0;
    Node send{.chunk = forward ? rank : rank + 1,
              .direction = forward ? Direction::F : Direction::D,
              .micro_batch = i,
              .piece = Piece::Send};
    Node receive = send;
    receive.chunk = forward ? rank + 1 : rank;
    receive.piece = Piece::Receive;
    append(rank, forward ? send : receive, forward ? Lane::PpSendNext : Lane::PpReceiveNext);
    append(rank + 1,
           forward ? receive : send,
           forward ? Lane::PpReceivePrevious : Lane::PpSendPrevious);
  }

  std::mt19937 random_;
  bool only_local_;
  std::vector<schedule::Graph> graphs_;
  std::vector<std::vector<std::int64_t>> costs_ns_;
  SimulatedStep step_;
};

TEST(RandomSteps, CostsAloneEqualTheSlowClock) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomStep random(seed);
    EXPECT_EQ(simulate(random.step()).entries, simulate_slowly(random.step())) << "seed " << seed;
  }
}

TEST(RandomSteps, OverheadsEqualTheSlowClock) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomStep random(seed);
    random.add_overheads();
    EXPECT_EQ(simulate(random.step()).entries, simulate_slowly(random.step())) << "seed " << seed;
  }
}

TEST(RandomSteps, AFabricEqualsTheSlowClock) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomStep random(seed);
    random.add_overheads();
    random.add_wire();
    EXPECT_EQ(simulate(random.step()).entries, simulate_slowly(random.step())) << "seed " << seed;
  }
}

TEST(RandomSteps, TheStepIsAsLongAsItsLastEntry) {
  RandomStep random(7);
  random.add_wire();
  const Result result = simulate(random.step());
  std::int64_t last = 0;
  for (const auto& rank : result.entries) {
    for (const Interval& entry : rank) last = std::max(last, entry.end_ns);
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(result.step_ns, last);
}

}  // namespace random_test
}  // namespace weft::exec::sim
