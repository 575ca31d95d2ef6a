#include "weft/derive/machines.h"

#include <gtest/gtest.h>

namespace weft::derive {
namespace machines_test {

TEST(Machines, MembersAreCountedWhereTheyLie) {
  EXPECT_EQ(members_by_machine({0, 1, 2, 3, 4, 5, 6, 7}, 3), (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_EQ(members_by_machine({4, 5, 6, 7}, 6), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(members_by_machine({1, 3, 5, 7}, 4), (std::vector<std::int64_t>{2, 2}))
      << "not in a row";
}

TEST(Machines, TheMostRemoteRankIsTheOneWithTheFewestBesideIt) {
  const GroupPlace alone = most_remote({{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}, 5);
  EXPECT_EQ(alone.rank, 4) << "[4 | 5 6 7]";
  EXPECT_EQ(alone.machines, 2);
  EXPECT_EQ(alone.in_machine, 1);
  const GroupPlace later = most_remote({{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}, 6);
  EXPECT_EQ(later.rank, 4) << "the first group is in one machine";
  EXPECT_EQ(later.in_machine, 2);
  const GroupPlace together = most_remote({{0, 1}, {2, 3}}, 4);
  EXPECT_EQ(together.rank, 0);
  EXPECT_EQ(together.machines, 1);
  EXPECT_EQ(together.in_machine, 2);
}

}  // namespace machines_test
}  // namespace weft::derive
