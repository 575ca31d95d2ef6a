#include "weft/model/moe/exchange.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::model {
namespace exchange_test {

// Two ranks, four experts, two per rank; six rows per rank.
const std::vector<std::int64_t> kCounts{1,
                                        2,
                                        3,
                                        0,  // rank 0
                                        0,
                                        4,
                                        1,
                                        1};  // rank 1

TEST(Exchange, SplitsFollowTheOwnersOfTheExperts) {
  const Exchange first = plan_exchange(kCounts, 2, 0, 4, 6);
  EXPECT_EQ(first.send_rows, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(first.receive_rows, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(first.expert_rows, (std::vector<std::int64_t>{1, 6}));
  EXPECT_EQ(first.send_blocks, (std::vector<std::int64_t>{1, 2, 3, 0}));
  EXPECT_EQ(first.receive_blocks, (std::vector<std::int64_t>{1, 2, 0, 4}));
  EXPECT_EQ(first.received, 7);
  const Exchange second = plan_exchange(kCounts, 2, 1, 4, 6);
  EXPECT_EQ(second.receive_rows, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(second.expert_rows, (std::vector<std::int64_t>{4, 1}));
}

TEST(Exchange, RowsGoByExpertThenBySourceAndBack) {
  const Exchange plan = plan_exchange(kCounts, 2, 0, 4, 6);
  // Wire order: (rank 0, expert 0) 1 row, (0, 1) 2 rows, (1, 1) 4 rows.
  std::vector<int> wire{0, 1, 1, 11, 11, 11, 11}, expert(7, -1), back(7, -1);
  for (const kernels::RowBlock& block : plan.to_expert_order) {
    std::copy_n(wire.begin() + block.from, block.rows, expert.begin() + block.to);
  }
  EXPECT_EQ(expert, (std::vector<int>{0, 1, 1, 11, 11, 11, 11}));
  for (const kernels::RowBlock& block : plan.to_wire_order) {
    std::copy_n(expert.begin() + block.from, block.rows, back.begin() + block.to);
  }
  EXPECT_EQ(back, wire);
}

TEST(Exchange, OneRankOrOneExpertNeedsNoReordering) {
  EXPECT_TRUE(plan_exchange(std::vector<std::int64_t>{2, 4}, 1, 0, 2, 6).to_expert_order.empty());
  EXPECT_TRUE(
      plan_exchange(std::vector<std::int64_t>{2, 4, 5, 1}, 2, 1, 2, 6).to_expert_order.empty());
}

TEST(Exchange, LyingCountsAreErrorsThatNameTheMember) {
  const auto complaint = [](std::vector<std::int64_t> counts) -> std::string {
    try {
      plan_exchange(counts, 2, 0, 4, 6);
    } catch (const base::SystemError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(complaint({1, 2, 3, 0, -1, 5, 1, 1}).find("member 1"), std::string::npos);
  EXPECT_NE(complaint({1, 2, 3, 0, 0, 4, 1, 2}).find("member 1"), std::string::npos);
  EXPECT_NE(complaint({1, 2, 4, 0, 0, 4, 1, 1}).find("member 0"), std::string::npos);
  EXPECT_NE(
      complaint({1, 2, 3, 0, std::int64_t{1} << 62, std::int64_t{1} << 62, 0, 0}).find("member 1"),
      std::string::npos);
}

}  // namespace exchange_test
}  // namespace weft::model
