#include "weft/grid/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "weft/base/error.h"

namespace weft::grid {
namespace fabric_test {

// 1 byte/ns within a machine, a quarter of that between machines.
constexpr Link kFast{.bytes_per_second = 1e9, .latency_seconds = 100e-9};
constexpr Link kSlow{.bytes_per_second = 0.25e9, .latency_seconds = 1000e-9};

std::vector<std::int64_t> reserve(Ports& ports,
                                  std::int64_t now,
                                  const std::vector<Transfer>& transfers) {
  std::vector<std::int64_t> ends(transfers.size());
  ports.reserve(now, transfers, ends);
  return ends;
}

std::vector<Transfer> all_to_all(const std::vector<int>& ranks, std::int64_t bytes) {
  std::vector<Transfer> all;
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from != to) all.push_back({from, to, bytes});
    }
  }
  return all;
}

std::int64_t last(const std::vector<std::int64_t>& ends) {
  return *std::max_element(ends.begin(), ends.end());
}

using Ends = std::vector<std::int64_t>;

TEST(Fabric, MachinesAreRunsOfRanks) {
  const Fabric two{.ranks_per_node = 2};
  EXPECT_TRUE(two.same_machine(2, 3));
  EXPECT_FALSE(two.same_machine(1, 2));
  EXPECT_TRUE(Fabric{}.same_machine(0, 1000));
}

TEST(Fabric, IsFreeWhereNothingEverWaits) {
  EXPECT_TRUE(Fabric{}.is_free());
  EXPECT_TRUE((Fabric{.ranks_per_node = 2}).is_free());
  EXPECT_TRUE((Fabric{.inter = kSlow}).is_free()) << "there is one machine";
  EXPECT_FALSE((Fabric{.ranks_per_node = 2, .inter = kSlow}).is_free());
  EXPECT_FALSE((Fabric{.intra = {.latency_seconds = 1e-6}}).is_free());
  EXPECT_FALSE((Fabric{.intra = {.bytes_per_second = 1e9}}).is_free());
  EXPECT_FALSE((Fabric{.jitter_seconds = 1e-6}).is_free());
}

TEST(Fabric, IsDescribedAsEmulated) {
  EXPECT_EQ(
      describe({.ranks_per_node = 2, .intra = kFast, .inter = kSlow, .jitter_seconds = 2e-6}),
      "emulated fabric: 2 ranks a machine, inside 1 GB/s + 0.1 us, between machines 0.25 GB/s + 1 "
      "us, jitter up to 2 us");
  EXPECT_EQ(describe({.intra = {.latency_seconds = 3e-6}}),
            "emulated fabric: one machine, any bandwidth + 3 us");
  EXPECT_EQ(describe({}), "free fabric: bytes take no time");
}

TEST(Ports, ATransferTakesItsBytesAndTheLatency) {
  Ports ports({.ranks_per_node = 2, .intra = kFast, .inter = kSlow}, 4);
  EXPECT_EQ(reserve(ports, 5000, {{0, 1, 800}}), Ends{5000 + 800 + 100});
  EXPECT_EQ(reserve(ports, 5000, {{0, 2, 800}}), Ends{5000 + 3200 + 1000})
      << "the port between machines is another one";
}

TEST(Ports, LatencyKeepsNoPortBusy) {
  Ports ports({.intra = kFast}, 3);
  EXPECT_EQ(reserve(ports, 0, {{0, 1, 1000}}), Ends{1100});
  EXPECT_EQ(reserve(ports, 0, {{0, 1, 1000}}), Ends{2100});
  EXPECT_EQ(reserve(ports, 2050, {{0, 1, 10}}), Ends{2160}) << "free again since 2000";
}

TEST(Ports, TransfersWaitForBothPorts) {
  Ports ports({.intra = kFast}, 4);
  reserve(ports, 0, {{0, 1, 1000}});
  reserve(ports, 0, {{2, 3, 3000}});
  EXPECT_EQ(reserve(ports, 0, {{0, 3, 500}}), Ends{3600}) << "rank 3 takes in until 3000";
  EXPECT_EQ(reserve(ports, 0, {{0, 2, 500}}), Ends{4100}) << "rank 0 gives out until 3500";
  EXPECT_EQ(reserve(ports, 0, {{1, 0, 500}}), Ends{600}) << "full duplex";
}

TEST(Ports, ZeroBytesTakeNoPort) {
  Ports ports({.intra = kFast}, 2);
  reserve(ports, 0, {{0, 1, 1000}});
  EXPECT_EQ(reserve(ports, 0, {{0, 1, 0}}), Ends{100});
}

TEST(Ports, WithoutABandwidthBytesTakeNoTime) {
  Ports ports({.intra = {.latency_seconds = 1e-6}}, 2);
  EXPECT_EQ(reserve(ports, 7, {{0, 1, 1 << 30}, {1, 0, 5}}), (Ends{1007, 1007}));
  EXPECT_EQ(reserve(ports, 7, {{0, 1, 1 << 30}}), Ends{1007});
}

TEST(Ports, AllToAllOfEqualPartsNeverQueuesBehindItself) {
  for (int size = 2; size <= 9; ++size) {
    std::vector<int> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back(i * i + 3);  // irregular distances
    Ports ports({.intra = kFast}, 100);
    EXPECT_EQ(last(reserve(ports, 40, all_to_all(ranks, 1000))), 40 + (size - 1) * 1000 + 100);
    Ports machines({.ranks_per_node = 1, .inter = kSlow}, 100);
    EXPECT_EQ(last(reserve(machines, 40, all_to_all(ranks, 1000))), 40 + (size - 1) * 4000 + 1000);
  }
}

TEST(Ports, AllToAllOverMachinesFillsBothKindsOfPorts) {
  // Each rank has 3 peers in its machine and 8 in the other two.
  Ports ports({.ranks_per_node = 4, .intra = kFast, .inter = kSlow}, 12);
  std::vector<int> ranks(12);
  for (int i = 0; i < 12; ++i) ranks[static_cast<std::size_t>(i)] = i;
  const auto transfers = all_to_all(ranks, 1000);
  const Ends ends = reserve(ports, 0, transfers);
  std::int64_t inside = 0, between = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const bool same = transfers[i].from / 4 == transfers[i].to / 4;
    std::int64_t& latest = same ? inside : between;
    latest = std::max(latest, ends[i]);
  }
  EXPECT_EQ(inside, 3 * 1000 + 100);
  EXPECT_EQ(between, 8 * 4000 + 1000);
}

TEST(Ports, UnequalPartsByHand) {
  // Distance 1: 0>1 (100) 0..100, 1>2 (300) 0..300, 2>0 (200) 0..200. Distance 2: 0>2 (50) waits
  // for rank 2 until 300; 1>0 (10) for itself until 300; 2>1 (400) for itself until 200.
  Ports ports({.intra = {.bytes_per_second = 1e9}}, 3);
  EXPECT_EQ(reserve(ports,
                    0,
                    {{0, 1, 100}, {0, 2, 50}, {1, 0, 10}, {1, 2, 300}, {2, 0, 200}, {2, 1, 400}}),
            (Ends{100, 350, 310, 300, 200, 600}));
}

TEST(Ports, EndsDoNotDependOnTheOrderGiven) {
  const Fabric fabric{.ranks_per_node = 2, .intra = kFast, .inter = kSlow, .jitter_seconds = 1e-6};
  std::vector<Transfer> transfers = all_to_all({0, 1, 2, 3, 5}, 0);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    transfers[i].bytes = static_cast<std::int64_t>(100 * (i * 7 % 13));
  }
  Ports forward(fabric, 6), backward(fabric, 6);
  Ends there = reserve(forward, 0, transfers);
  std::reverse(transfers.begin(), transfers.end());
  const Ends back = reserve(backward, 0, transfers);
  std::reverse(there.begin(), there.end());
  EXPECT_EQ(there, back);
}

TEST(Ports, OperationsContendInTheOrderOfTheirReservation) {
  Ports ports({.intra = kFast}, 4);
  EXPECT_EQ(last(reserve(ports, 0, all_to_all({0, 1, 2}, 1000))), 2100);
  EXPECT_EQ(reserve(ports, 500, {{0, 3, 1000}, {3, 0, 1000}}), (Ends{3100, 3100}));
}

TEST(Ports, JitterIsBoundedVariedAndReproducible) {
  Fabric fabric{.intra = kFast, .jitter_seconds = 1e-6, .seed = 5};
  Ports one(fabric, 3), same(fabric, 3);
  fabric.seed = 6;
  Ports other(fabric, 3);
  std::set<std::int64_t> drawn;
  int differ = 0;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t end = reserve(one, 10000 * i, {{0, 1, 1000}})[0];
    const std::int64_t extra = end - 10000 * i - 1100;
    EXPECT_GE(extra, 0);
    EXPECT_LT(extra, 1000);
    drawn.insert(extra);
    // Transfers of other pairs in between have no effect.
    reserve(same, 10000 * i, {{1, 2, 0}});
    EXPECT_EQ(reserve(same, 10000 * i, {{0, 1, 1000}})[0], end);
    differ += reserve(other, 10000 * i, {{0, 1, 1000}})[0] != end ? 1 : 0;
  }
  EXPECT_GT(drawn.size(), 100u);
  EXPECT_GT(*drawn.rbegin() - *drawn.begin(), 900);
  EXPECT_GT(differ, 150);
}

TEST(Ports, JitterKeepsNoPortBusy) {
  Ports ports({.intra = kFast, .jitter_seconds = 1}, 2);
  for (int i = 1; i <= 20; ++i)
    EXPECT_LT(reserve(ports, 0, {{0, 1, 1000}})[0], 1000000000 + i * 1000 + 100);
}

TEST(Ports, EndlessTransfersDoNotOverflow) {
  Ports ports({.intra = {.bytes_per_second = 1e-30, .latency_seconds = 1e300}}, 2);
  for (int i = 0; i < 3; ++i) {
    const Ends ends = reserve(ports, 1000, {{0, 1, std::numeric_limits<std::int64_t>::max()}});
    EXPECT_GT(ends[0], std::numeric_limits<std::int64_t>::max() / 4);
  }
}

TEST(Ports, RefuseWhatIsNoTransfer) {
  Ports ports({.intra = kFast}, 2);
  for (const Transfer wrong :
       {Transfer{0, 0, 1}, Transfer{0, 2, 1}, Transfer{-1, 0, 1}, Transfer{0, 1, -1}}) {
    EXPECT_THROW(reserve(ports, 0, {wrong}), base::InternalError);
  }
  EXPECT_THROW(Ports({.intra = {.bytes_per_second = -1}}, 2), base::InternalError);
}

}  // namespace fabric_test
}  // namespace weft::grid
