#include "weft/measure/device/core_turn.h"

#include <gtest/gtest.h>

namespace weft::measure {
namespace core_turn_test {

// Two threads cannot both have one core all the time. Time slices are therefore seen, unless
// another program has the core during all tries.
TEST(CoreTurn, IsOfATurnsLength) {
  double seconds = 0;
  for (int i = 0; i < 20 && seconds == 0; ++i) seconds = core_turn_seconds();
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1);
}

// A busy machine showed "turns" of 6 ms, 0.3 s and 1.1 s on one core.
TEST(CoreTurn, ABusyMachineDoesNotMakeItLonger) {
  EXPECT_DOUBLE_EQ(turn_of({{0.003, 0.003, 1.1}, {0.3, 0.006}, {0.321}, {}}), 0.003);
  EXPECT_DOUBLE_EQ(turn_of({{1.136}, {0.321, 6.2}}), 0) << "no turn of its own was seen";
  EXPECT_DOUBLE_EQ(turn_of({}), 0);
}

}  // namespace core_turn_test
}  // namespace weft::measure
