#include "weft/train/log/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

StepRecord small() {
  return {.iteration = 10,
          .iterations = 100,
          .consumed_samples = 80,
          .epoch = 1.25,
          .global_batch_size = 8,
          .elapsed_ms = 500,
          .tokens_per_second = 2048,
          .tflops_per_rank = 0.01234,
          .learning_rate = 1e-3,
          .loss = 2.5,
          .gradient_norm = 1.5};
}

std::string line_of(const StepRecord& record) {
  return log_line(record, std::chrono::system_clock::time_point{});
}

TEST(Metrics, TheLogLineHasMegatronsFieldsInItsOrderAndOursBehind) {
  const std::string line = line_of(small());
  EXPECT_TRUE(
      says(line,
           "] iteration       10/     100 | consumed samples:           80 | elapsed time "
           "per iteration (ms): 500.0 | throughput per GPU (TFLOP/s/GPU): 0.0123 | learning "
           "rate: 1.000000E-03 | global batch size:     8 | lm loss: 2.500000E+00 | loss "
           "scale: 1.0 | grad norm: 1.500 | number of skipped iterations:   0 | number of "
           "nan iterations:   0 |"))
      << line;
  EXPECT_TRUE(line.ends_with(" | tokens/s: 2048 | epoch: 1.25 | time left: 0:00:45 |")) << line;
}

TEST(Metrics, ThroughputHasDigitsThatSaySomething) {
  StepRecord record = small();
  for (const auto& [value, shown] :
       {std::pair{0.0, "0.0"}, {123.45, "123.5"}, {1.5, "1.50"}, {0.0004567, "0.000457"}}) {
    record.tflops_per_rank = value;
    EXPECT_TRUE(says(line_of(record), std::string("(TFLOP/s/GPU): ") + shown + " |"))
        << line_of(record);
  }
}

TEST(Metrics, ANanHasNoSign) {
  StepRecord record = small();
  record.gradient_norm = -kNan;
  record.loss = -kNan;
  EXPECT_TRUE(says(line_of(record), "grad norm: nan |")) << line_of(record);
  EXPECT_TRUE(says(line_of(record), "lm loss: NAN |")) << line_of(record);
}

TEST(Metrics, SkippedStepsAreCountedFromLineToLine) {
  StepRecord record = small();
  record.not_finite = 3;
  LogInterval interval(3);
  interval.add(record);
  EXPECT_EQ(interval.mean(record).not_finite, 0);
  record.not_finite = 4;
  record.loss = kNan;
  interval.add(record);
  record.loss = 4.5;
  interval.add(record);
  const StepRecord mean = interval.mean(record);
  EXPECT_EQ(mean.not_finite, 1);
  EXPECT_DOUBLE_EQ(mean.loss, 3.5) << "the mean of the steps that changed something";
  EXPECT_DOUBLE_EQ(mean.elapsed_ms, 500);
}

TEST(Metrics, AnIntervalOfSkippedStepsHasNoLoss) {
  StepRecord record = small();
  LogInterval interval;
  record.not_finite = 1;
  interval.add(record);
  EXPECT_TRUE(std::isnan(interval.mean(record).loss));
}

TEST(Metrics, TimeIsShownAsAClock) {
  EXPECT_EQ(clock_text(0), "0:00:00");
  EXPECT_EQ(clock_text(3725.4), "1:02:05");
  EXPECT_EQ(clock_text(1e6), "277:46:40");
  EXPECT_EQ(clock_text(std::nan("")), "0:00:00");
}

}  // namespace
}  // namespace weft::train
