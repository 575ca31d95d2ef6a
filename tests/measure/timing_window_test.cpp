#include "weft/measure/runs/timing_window.h"

#include <gtest/gtest.h>

#include <vector>

#include "weft/base/error.h"

namespace weft::measure {
namespace timing_window_test {

Window by_default(std::int64_t steps) { return timing_window(steps, {}); }

TEST(TimingWindow, SkipsSeventyPercentButAtLeastTwoStepsAndLeavesThree) {
  EXPECT_EQ(by_default(50), (Window{35, 50}));
  EXPECT_EQ(by_default(10), (Window{7, 10}));
  EXPECT_EQ(by_default(8), (Window{5, 8}));
  EXPECT_EQ(by_default(6), (Window{3, 6}));
  EXPECT_EQ(by_default(5), (Window{2, 5}));
}

TEST(TimingWindow, OfFewStepsLeavesOutTheFirstAlone) {
  EXPECT_EQ(by_default(4), (Window{1, 4}));
  EXPECT_EQ(by_default(3), (Window{1, 3}));
  EXPECT_EQ(by_default(2), (Window{1, 2}));
  EXPECT_EQ(by_default(1), (Window{0, 1}));
}

TEST(TimingWindow, FollowsTheOptions) {
  EXPECT_EQ(timing_window(50, {.start = 41, .end = 50}), (Window{41, 50}));
  EXPECT_EQ(timing_window(50, {.start = {}, .end = 20}), (Window{14, 20}));
  EXPECT_EQ(timing_window(20, {.start = {}, .end = {}, .skip_first = 0.1}), (Window{2, 20}));
  EXPECT_EQ(timing_window(4, {.start = 0, .end = {}}), (Window{0, 4}));
}

TEST(TimingWindow, OptionsThatLeaveNoStepAreRefused) {
  EXPECT_THROW(timing_window(8, {.start = 8, .end = {}}), base::ConfigError);
  EXPECT_THROW(timing_window(8, {.start = -1, .end = {}}), base::ConfigError);
  EXPECT_THROW(timing_window(8, {.start = {}, .end = 9}), base::ConfigError);
  EXPECT_THROW(timing_window(8, {.start = {}, .end = 0}), base::ConfigError);
  EXPECT_THROW(timing_window(8, {.start = {}, .end = {}, .skip_first = 1}), base::ConfigError);
}

TEST(TimingWindow, SteadyStateIsOfTheStepsInside) {
  const std::vector<double> times{1000, 2, 4, 6, 1000};
  const Steady steady = steady_state(times, {.first = 1, .end = 4});
  EXPECT_DOUBLE_EQ(steady.mean, 4);
  EXPECT_DOUBLE_EQ(steady.deviation, 2);
  EXPECT_DOUBLE_EQ(steady.least, 2);
  EXPECT_DOUBLE_EQ(steady.most, 6);
  EXPECT_EQ(steady_state(times, {.first = 1, .end = 2}).deviation, 0);
}

}  // namespace timing_window_test
}  // namespace weft::measure
