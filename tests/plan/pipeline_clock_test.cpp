#include "weft/plan/price/pipeline_clock.h"

#include <gtest/gtest.h>

namespace weft::plan {
namespace pipeline_clock_test {

// Equal stages: a forward takes 1, a backward 2, half of it weight gradients.
PipelineWork equal_stages(int pp, int vpp, int micro_batches, schedule::TurnOrder order) {
  PipelineWork work{.pipeline = {.pp = pp, .vpp = vpp},
                    .shapes = {},
                    .stages = {},
                    .merged = {},
                    .send_seconds = 0,
                    .sends_beside = true};
  for (int rank = 0; rank < pp; ++rank) {
    work.shapes.push_back({.pp = pp,
                           .pp_rank = rank,
                           .vpp = vpp,
                           .micro_batches = micro_batches,
                           .group = pp,
                           .order = order});
  }
  for (int stage = 0; stage < pp * vpp; ++stage) {
    work.stages.push_back({.forward = {.forward = 1}, .backward = {.backward = 2}, .weights = 1});
  }
  return work;
}

constexpr auto kPlain = schedule::TurnOrder::OneForwardOneBackward;

TEST(PipelineClock, FillsAndDrainsAsTheTextbookSays) {
  for (const int pp : {1, 2, 4}) {
    const PipelineTime time = run_pipeline(equal_stages(pp, 1, 8, kPlain));
    EXPECT_DOUBLE_EQ(time.seconds, 3 * (8 + pp - 1));
    for (const RankClock& rank : time.ranks) {
      EXPECT_DOUBLE_EQ(rank.work.total(), 3 * 8);
      EXPECT_DOUBLE_EQ(rank.idle, 3 * (pp - 1));
    }
  }
}

TEST(PipelineClock, ChunksMakeTheBubbleSmaller) {
  const PipelineTime time = run_pipeline(equal_stages(4, 2, 8, kPlain));
  EXPECT_DOUBLE_EQ(time.longest().idle, 3 * (4 - 1));
  EXPECT_DOUBLE_EQ(time.longest().work.total(), 3 * 2 * 8);
}

TEST(PipelineClock, WeightGradientsThatArePutOffFillTheBubble) {
  const auto zero = schedule::TurnOrder::ZeroBubble;
  // (pp - 1) (F + D - W), as builders/orders.h says.
  EXPECT_DOUBLE_EQ(run_pipeline(equal_stages(4, 1, 8, zero)).seconds, 3 * 8 + 3);
}

TEST(PipelineClock, TheSlowestStageSetsThePace) {
  PipelineWork work = equal_stages(4, 1, 32, kPlain);
  work.stages[2].forward.forward = 2;
  const PipelineTime time = run_pipeline(work);
  EXPECT_DOUBLE_EQ(time.longest().work.total(), 4 * 32);
  EXPECT_GE(time.seconds, 4 * 32);
  EXPECT_LT(time.seconds, 4 * 32 + 4 * 3);
}

TEST(PipelineClock, SendsThatNothingHidesAreTold) {
  PipelineWork work = equal_stages(2, 1, 8, kPlain);
  work.send_seconds = 0.5;
  work.sends_beside = false;
  const PipelineTime blocked = run_pipeline(work);
  EXPECT_DOUBLE_EQ(blocked.ranks[0].pp, 0.5 * 8);
  EXPECT_GT(blocked.seconds, run_pipeline(equal_stages(2, 1, 8, kPlain)).seconds + 0.5 * 8 - 1e-9);
  work.sends_beside = true;
  EXPECT_LT(run_pipeline(work).seconds, blocked.seconds);
}

TEST(PipelineClock, MergedTurnsTakeWhatIsSaidOfThem) {
  PipelineWork work = equal_stages(1, 1, 8, kPlain);
  work.shapes.front().extra_warm_up = 1;
  work.merged = [](int, int) { return PlainTime{.forward = 1, .backward = 1.5, .ep = 0.25}; };
  const PipelineTime time = run_pipeline(work);
  // The first forward and the last backward have no partner.
  EXPECT_DOUBLE_EQ(time.seconds, 1 + 7 * 2.5 + 2);
  EXPECT_DOUBLE_EQ(time.longest().work.ep, 7 * 0.25);
}

}  // namespace pipeline_clock_test
}  // namespace weft::plan
