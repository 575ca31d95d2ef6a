#include "weft/measure/core_turn.h"

#include <gtest/gtest.h>

namespace weft::measure {
namespace core_turn_test {

// Between what a scheduler may give at least and the time that is looked at; none where another
// program has the core all the time.
TEST(CoreTurn, IsOfATurnsLength) {
  const double seconds = core_turn_seconds();
  EXPECT_LT(seconds, 10);
  const bool is_turn = seconds == 0 || seconds >= 1e-4;
  EXPECT_TRUE(is_turn) << seconds;
}

}  // namespace core_turn_test
}  // namespace weft::measure
