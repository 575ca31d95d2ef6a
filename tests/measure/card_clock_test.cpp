#include "weft/measure/device/card_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "weft/kernels/device.h"
#include "weft/kernels/gpu_report.h"
#include "weft/tensor/stream.h"

namespace weft::measure {
namespace card_clock_test {

TEST(CardClock, AStretchHasTheSamplesWithinIt) {
  const std::vector<ClockSample> samples{
      {.at_ns = 5, .mhz = 300, .watts = 80},
      {.at_ns = 10, .mhz = 1900, .watts = 500},
      {.at_ns = 20, .mhz = 1500, .watts = 700, .held_back = {.by_power = true}},
      {.at_ns = 30, .mhz = 1600, .watts = 690, .held_back = {.by_power = true, .by_heat = true}},
      {.at_ns = 31, .mhz = 100, .watts = 60}};
  const ClockSpan span = clock_span(samples, 10, 30);
  EXPECT_EQ(span.samples, 3);
  EXPECT_EQ(span.lowest_mhz, 1500);
  EXPECT_EQ(span.median_mhz, 1600);
  EXPECT_EQ(span.highest_mhz, 1900);
  EXPECT_EQ(span.median_watts, 690);
  EXPECT_DOUBLE_EQ(span.power_share, 2.0 / 3);
  EXPECT_DOUBLE_EQ(span.heat_share, 1.0 / 3);
  EXPECT_EQ(clock_span(samples, 11, 19).samples, 0);
}

TEST(CardClock, NoCardHasNoClock) { EXPECT_EQ(CardClock::watch("no card"), nullptr); }

TEST(CardClock, OfAGpuIsWatched) {
  const kernels::GpuReport report = kernels::gpu_report();
  if (report.gpus.empty()) GTEST_SKIP() << "skipped: " << report.why_none;
  const std::int64_t begin_ns = tensor::now_ns();
  const auto clock = CardClock::watch(report.gpus.front().pci);
  if (clock == nullptr) GTEST_SKIP() << "skipped: the driver does not tell the clock of this card";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const ClockSpan span = clock->between(begin_ns, tensor::now_ns());
  EXPECT_GT(span.samples, 1);
  EXPECT_GT(span.lowest_mhz, 0);
  EXPECT_LE(span.highest_mhz, clock->most_mhz());
  EXPECT_GT(clock->most_watts(), 0);
}

}  // namespace card_clock_test
}  // namespace weft::measure
