#include "weft/measure/runs/steady_part.h"

#include <gtest/gtest.h>

#include "tests/trace/timeline_support.h"

namespace weft::measure {
namespace steady_part_test {

using trace::Hand;

constexpr double kNear = 1e-9;

// Two forwards, then turns, then two backwards: the steady part is 20 to 50.
Hand rank(int number) {
  return Hand(number)
      .compute("0F0.mlp", 0, 10)
      .compute("0F1.mlp", 10, 20)
      .compute("0D0.mlp", 20, 30)
      .compute("0W0.mlp", 30, 40)
      .compute("0F2.mlp", 40, 50)
      .compute("0D1.mlp", 50, 60)
      .compute("0D2.mlp", 60, 70);
}

TEST(SteadyPart, IsFromTheFirstBackwardToTheLastForward) {
  const trace::Timeline timeline = rank(0);
  EXPECT_NEAR(steady_seconds({&timeline, 1}), 0.030, kNear);
}

TEST(SteadyPart, IsOfTheShortestRunInTheMeanOverRanks) {
  const std::vector<trace::Timeline> timelines{
      rank(0).run(1).compute("0D0.mlp", 100, 110).compute("0F1.mlp", 110, 120),
      rank(1).run(1).compute("0D0.mlp", 100, 110).compute("0F1.mlp", 110, 116)};
  EXPECT_NEAR(steady_seconds(timelines), 0.018, kNear);
}

TEST(SteadyPart, IsNothingWithoutTurns) {
  EXPECT_EQ(steady_seconds({}), 0);
  const trace::Timeline timeline =
      Hand(0).compute("0F0.mlp", 0, 10).compute("0D0.mlp", 10, 20).compute("reduce.dense", 20, 30);
  EXPECT_EQ(steady_seconds({&timeline, 1}), 0);
}

}  // namespace steady_part_test
}  // namespace weft::measure
