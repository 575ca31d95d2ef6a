// Differences of step times within the spread of the steps.
#include "weft/cli/perf/perf_noise.h"

#include <gtest/gtest.h>

namespace weft::cli {
namespace perf_noise_test {

measure::PerfRun run_of(double mean, double deviation, std::int64_t steps) {
  measure::PerfRun run;
  run.window = measure::Window{.first = 2, .end = 2 + steps};
  run.steady_ms = measure::Steady{.mean = mean, .deviation = deviation};
  return run;
}

TEST(PerfNoise, ADifferenceWithinTheSpreadIsNoVerdict) {
  const auto near = difference_of(run_of(148.73, 25.06, 6), run_of(135.92, 28.72, 6));
  ASSERT_TRUE(near);
  EXPECT_EQ(near->verdict(), RunVerdict::Noise);
  EXPECT_NEAR(near->ms, 12.81, 1e-9);
  EXPECT_NE(to_text(*near).find("within the noise: +12.81 ms"), std::string::npos);
}

TEST(PerfNoise, ADifferenceBeyondTheSpreadIsFasterOrSlower) {
  const measure::PerfRun slow = run_of(150, 1, 6), fast = run_of(135, 1, 6);
  EXPECT_EQ(difference_of(fast, slow)->verdict(), RunVerdict::Faster);
  EXPECT_EQ(difference_of(slow, fast)->verdict(), RunVerdict::Slower);
}

TEST(PerfNoise, ASingleStepHasNoSpread) {
  const auto difference = difference_of(run_of(100, 0, 1), run_of(200, 1, 6));
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->noise_ms);
  EXPECT_EQ(difference->verdict(), RunVerdict::Noise);
  EXPECT_FALSE(difference_of(measure::PerfRun{}, run_of(200, 1, 6))) << "no step was timed";
}

}  // namespace perf_noise_test
}  // namespace weft::cli
