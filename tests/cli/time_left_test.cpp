#include "weft/cli/terminal/time_left.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/cli/run/train_progress.h"

namespace weft::cli {
namespace time_left_test {

TEST(TimeLeft, IsUnknownUntilAStepAfterTheFirstIsOver) {
  TimeLeft left;
  EXPECT_FALSE(left.seconds_for(10));
  left.step_over(100);  // the first one, of any duration
  EXPECT_FALSE(left.seconds_for(10));
  left.step_over(102);
  EXPECT_DOUBLE_EQ(left.seconds_for(10).value(), 20);
}

TEST(TimeLeft, FollowsTheRecentSteps) {
  TimeLeft left;
  double now = 0;
  for (int i = 0; i < 100; ++i) left.step_over(now += 10);
  for (int i = 0; i < 51; ++i) left.step_over(now += 1);
  EXPECT_DOUBLE_EQ(left.seconds_for(3).value(), 3);
}

TEST(TimeLeft, IsSaidInTwoWordsAtMost) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(12.4), "12 s");
  EXPECT_EQ(duration_text(59.7), "1 min 0 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(12000), "3 h 20 min");
  EXPECT_EQ(duration_text(1e6), "11 d 13 h");
  EXPECT_EQ(duration_text(std::nan("")), "0 s");
  EXPECT_EQ(duration_text(-5), "0 s");
}

train::StepRecord step_of(std::int64_t iteration, std::int64_t iterations) {
  return {.iteration = iteration,
          .iterations = iterations,
          .tokens_per_second = 7246,
          .loss = 2.1075};
}

TEST(ProgressLine, HasWhatIsLeftBehindTheNumbers) {
  EXPECT_EQ(progress_text(step_of(50, 100), 12000),
            "[##########          ] step 50/100  loss 2.1075  7246 tokens/s  3 h 20 min left");
  EXPECT_EQ(progress_text(step_of(50, 100), std::nullopt),
            "[############            ] step 50/100  loss 2.1075  7246 tokens/s");
  EXPECT_EQ(progress_text(step_of(100, 100), 0),
            "[########################] step 100/100  loss 2.1075  7246 tokens/s");
}

TEST(ProgressLine, FitsEightyColumns) {
  for (const auto& [steps, seconds] :
       {std::pair{10LL, 5.0}, {100'000LL, 3599.0}, {1'000'000LL, 35999.0}, {1'000'000LL, 9e6}}) {
    for (const double tokens : {1.0, 1e4, 1.2e7}) {
      train::StepRecord record = step_of(steps - 1, steps);
      record.tokens_per_second = tokens;
      EXPECT_LT(progress_text(record, seconds).size(), 80u) << progress_text(record, seconds);
    }
  }
}

}  // namespace time_left_test
}  // namespace weft::cli
