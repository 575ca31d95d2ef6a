#include "weft/measure/core_turn.h"

#include <gtest/gtest.h>

namespace weft::measure {
namespace core_turn_test {

// Two threads cannot both have one core all the time: turns are seen, unless another program has
// the core for all that is looked at, again and again.
TEST(CoreTurn, IsOfATurnsLength) {
  double seconds = 0;
  for (int i = 0; i < 20 && seconds == 0; ++i) seconds = core_turn_seconds();
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1);
}

}  // namespace core_turn_test
}  // namespace weft::measure
