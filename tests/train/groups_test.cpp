// Communication groups of a rank.
#include "weft/train/groups.h"

#include <gtest/gtest.h>

namespace weft::train {
namespace groups_test {

TEST(MachineMembers, AreThoseOfTheMachineAndThoseInTheSamePlace) {
  const MachineMembers whole = machine_members({0, 1, 2, 3, 4, 5, 6, 7}, 6, 4);
  EXPECT_EQ(whole.across, (std::vector{2, 6}));
  EXPECT_EQ(whole.within, (std::vector{4, 5, 6, 7}));
  // A group of every other rank, and one that begins within a machine.
  const MachineMembers spread = machine_members({1, 3, 5, 7}, 3, 4);
  EXPECT_EQ(spread.across, (std::vector{3, 7}));
  EXPECT_EQ(spread.within, (std::vector{1, 3}));
  const MachineMembers shifted = machine_members({2, 3, 4, 5}, 2, 4);
  EXPECT_EQ(shifted.across, (std::vector{2, 4}));
  EXPECT_EQ(shifted.within, (std::vector{2, 3}));
}

}  // namespace groups_test
}  // namespace weft::train
