// Compares the orders of pipeline ranks with worked examples of their schedules.
#include "weft/schedule/builders/turns.h"

#include <gtest/gtest.h>

#include "weft/base/text.h"

namespace weft::schedule {
namespace turns_test {

std::string text(const std::vector<Turn>& turns) {
  std::vector<std::string> words;
  for (const Turn& turn : turns) {
    words.push_back(base::text("{}{}.{}",
                               turn.direction == Direction::F ? 'F' : 'B',
                               turn.micro_batch,
                               turn.chunk));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

PipelineShape shape(int pp, int rank, int vpp, int micro_batches, int extra = 0) {
  return {.pp = pp,
          .pp_rank = rank,
          .vpp = vpp,
          .micro_batches = micro_batches,
          .group = pp,
          .extra_warm_up = extra};
}

TEST(Turns, OneRankTakesEachMicroBatchForwardAndBack) {
  EXPECT_EQ(text(training_turns(shape(1, 0, 1, 3))), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0");
}

TEST(Turns, OneMoreInTheWarmUpPairsNeighbours) {
  EXPECT_EQ(text(training_turns(shape(1, 0, 1, 3, 1))), "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0");
}

TEST(Turns, OneForwardOneBackward) {
  EXPECT_EQ(text(training_turns(shape(3, 0, 1, 4))), "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0");
  EXPECT_EQ(text(training_turns(shape(3, 2, 1, 4))), "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
}

TEST(Turns, WarmUpEndsWithTheMicroBatches) {
  EXPECT_EQ(warm_up(shape(8, 0, 1, 3)), 3);
  EXPECT_EQ(warm_up(shape(4, 0, 2, 4, 1)), 8);
  EXPECT_EQ(text(training_turns(shape(4, 0, 1, 2))), "F0.0 F1.0 B0.0 B1.0");
}

TEST(Turns, TwoRanksOfTwoChunks) {
  EXPECT_EQ(text(training_turns(shape(2, 0, 2, 4))),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(training_turns(shape(2, 0, 2, 4, 1))),
            "F0.0 F1.0 F0.1 F1.1 F2.0 F3.0 B0.1 F2.1 B1.1 F3.1 B0.0 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(training_turns(shape(2, 1, 2, 4))),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(training_turns(shape(2, 1, 2, 4, 1))),
            "F0.0 F1.0 F0.1 F1.1 B0.1 F2.0 B1.1 F3.0 B0.0 F2.1 B1.0 F3.1 B2.1 B3.1 B2.0 B3.0");
}

TEST(Turns, FourRanksOfTwoChunksWarmUp) {
  for (const int extra : {0, 1}) {
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(warm_up(shape(4, rank, 2, 8, extra)), 10 - 2 * rank + extra);
    }
  }
}

TEST(Turns, ALastGroupMayBeShorter) {
  PipelineShape uneven = shape(2, 1, 2, 7);
  uneven.group = 4;
  EXPECT_EQ(text(forward_turns(uneven)),
            "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 F4.0 F5.0 F6.0 F4.1 F5.1 F6.1");
}

}  // namespace turns_test
}  // namespace weft::schedule
