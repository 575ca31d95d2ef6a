// Every moment of a step belongs to one wall.
#include "weft/trace/exposure/walls.h"

#include <gtest/gtest.h>

#include "tests/trace/timeline_support.h"
#include "weft/trace/exposure/dominant_wall.h"

namespace weft::trace {
namespace walls_test {

double sum_of(const Walls& walls) {
  return walls.compute + walls.host + walls.communication + walls.bubble + walls.late + walls.copy +
         walls.idle;
}

Walls walls(std::vector<Timeline> timelines, std::size_t rank = 0) {
  return walls_of(timelines, Clocks::Shared).at(rank).walls;
}

// As may occur in a trace from another program.
TEST(Shortened, ARankWithoutSpansIsNoFault) {
  std::vector<Timeline> timelines{Timeline{}, Hand(0).compute("0F0.route", 0, 10)};
  const Shortened shortened{.micro_batches = 3,
                            .shown = 1,
                            .steady = part_of(timelines, 2, 5),
                            .repeated = 2};
  EXPECT_EQ(complaint_about(shortened, timelines, 16), "");
  timelines.back().spans.push_back(timelines.back().spans.front());
  timelines.back().spans.back().run = 1;
  EXPECT_NE(complaint_about(shortened, timelines, 16).find("more than one step"),
            std::string::npos);
}

TEST(Walls, AMessageAloneIsCommunication) {
  const Walls found =
      walls({Hand(0)
                 .compute("0F0.route", 0, 2)
                 .communication("ep", "0F0.dispatch", 2, 5, Cover::None)
                 .compute("0F0.experts", 5, 9, {"0F0.dispatch"}, SpanKind::Memory)});
  EXPECT_DOUBLE_EQ(found.step, 9);
  EXPECT_DOUBLE_EQ(found.compute, 6);
  EXPECT_DOUBLE_EQ(found.gemm, 2);
  EXPECT_DOUBLE_EQ(found.communication, 3);
  EXPECT_DOUBLE_EQ(sum_of(found), 9);
}

TEST(Walls, AGapBeforeAReadyNodeIsTheHosts) {
  const Walls found = walls({Hand(0).compute("0F0.route", 0, 2).compute("0F0.permute", 3, 4)});
  EXPECT_DOUBLE_EQ(found.host, 1);
  EXPECT_DOUBLE_EQ(sum_of(found), 4);
}

TEST(Walls, WaitingForAStageIsABubbleAndForOthersLateness) {
  const auto rank = [](const char* lane, double begin) {
    return Hand(0)
        .communication(lane, "x", begin, 6, Cover::None, {0, 1})
        .compute("y", 6, 8, {"x"});
  };
  for (const char* lane : {"pp_receive_previous", "ep"}) {
    Hand second(1);
    second.communication(lane, "x", 4, 6, Cover::None, {0, 1}).compute("y", 6, 8, {"x"});
    const std::vector<Timeline> both{rank(lane, 0), second};
    const Walls first = walls(both);
    EXPECT_DOUBLE_EQ(lane == std::string("ep") ? first.late : first.bubble, 4) << lane;
    EXPECT_DOUBLE_EQ(first.communication, 2) << lane;
    EXPECT_DOUBLE_EQ(sum_of(first), 8) << lane;
    // The late rank had no work before.
    EXPECT_DOUBLE_EQ(walls(both, 1).idle, 4) << lane;
  }
}

TEST(Walls, ACopyIsItsOwnWall) {
  Hand hand(0);
  hand.compute("x", 0, 2).node("copy", "out", 2, 5).operation(SpanKind::Copy, 2, 5);
  hand.compute("y", 5, 6, {"out"});
  const Walls found = walls({hand});
  EXPECT_DOUBLE_EQ(found.copy, 3);
  EXPECT_DOUBLE_EQ(found.idle, 0);
  EXPECT_DOUBLE_EQ(sum_of(found), 6);
}

// Two of five micro-batches are shown: the part from 3 to 6 ms occurs three more times.
TEST(Walls, WhatIsRepeatedCountsAsOftenAsTheStepHasIt) {
  Hand hand(0);
  hand.compute("a", 0, 3)
      .communication("ep", "x", 2, 4, Cover::None)
      .compute("b", 4, 5.5, {"x"})
      .communication("dp", "y", 5.5, 8, Cover::None)
      .compute("c", 8, 9, {"y"});
  const std::vector<Timeline> one{hand};
  const Shortened shortened{.micro_batches = 5,
                            .shown = 2,
                            .steady = part_of(one, 3, 6),
                            .repeated = 3};
  const Walls found = walls_of(one, Clocks::Shared, shortened).at(0).walls;
  EXPECT_DOUBLE_EQ(found.step, 9 + 3 * 3);
  EXPECT_DOUBLE_EQ(found.compute, 5.5 + 3 * 1.5);
  EXPECT_DOUBLE_EQ(found.gemm, 5.5 + 3 * 1.5);
  EXPECT_DOUBLE_EQ(found.communication, 3.5 + 3 * 1.5);
  EXPECT_DOUBLE_EQ(sum_of(found), found.step);
  const Exposure exposure = analyse(one, Clocks::Shared, shortened);
  EXPECT_DOUBLE_EQ(exposure.mean_step_ms(), found.step);
  EXPECT_DOUBLE_EQ(exposure.kinds.at("ep").communication_ms, 2 + 3 * 1);
  EXPECT_DOUBLE_EQ(exposure.kinds.at("ep").exposed_ms, 1 + 3 * 1);
  EXPECT_DOUBLE_EQ(exposure.kinds.at("ep").hidden_any, 1.0 / 5);
  EXPECT_DOUBLE_EQ(exposure.kinds.at("dp").exposed_ms, 2.5 + 3 * 0.5);
  EXPECT_DOUBLE_EQ(exposure.total.reasons.no_partner_ms, found.communication);
}

TEST(Walls, RunsAreMeansOfStepsThatEndWithTheSlowestRank) {
  Hand first(0), second(1);
  first.compute("x", 0, 2).run(1).compute("x", 10, 14);
  second.compute("x", 0, 4).run(1).compute("x", 10, 16);
  const std::vector<Timeline> both{first, second};
  EXPECT_DOUBLE_EQ(walls(both).step, 5);
  EXPECT_DOUBLE_EQ(walls(both).compute, 3);
  EXPECT_DOUBLE_EQ(walls(both).idle, 2);
  EXPECT_DOUBLE_EQ(walls_of(both, Clocks::Separate).at(0).walls.step, 3);
  EXPECT_DOUBLE_EQ(mean({}).step, 0);
}

TEST(DominantWall, IsTheLargestLossOrComputeWhereAllAreSmall) {
  const auto wall = [](const Walls& walls) { return dominant_wall(lost_of(walls), walls.step); };
  EXPECT_EQ(wall({.step = 100, .compute = 92, .host = 8}), Wall::Compute);
  EXPECT_EQ(wall({.step = 100, .compute = 39, .host = 13, .communication = 31, .late = 17}),
            Wall::Communication);
  // Waits for late ranks, and copies, count as communication.
  EXPECT_EQ(
      wall({.step = 100, .compute = 50, .host = 20, .communication = 10, .late = 12, .copy = 8}),
      Wall::Communication);
  EXPECT_EQ(wall({.step = 100, .compute = 70, .bubble = 30}), Wall::Bubble);
  EXPECT_EQ(wall({.step = 100, .compute = 70, .host = 10, .idle = 20}), Wall::Idle);
}

// Simulated step: the operation ends after 3 ms, and transfers prolong it to 4.
TEST(Walls, WhatTransfersTakeOfComputeIsAWallOfItsOwn) {
  Timeline timeline = Hand(0)
                          .communication("ep", "0F0.dispatch", 0, 5, Cover::Possible)
                          .node("compute", "0F0.experts", 0, 4)
                          .operation(SpanKind::Gemm, 0, 3)
                          .operation(SpanKind::Communication, 3, 4);
  timeline.spans.back().name = kSlowed;
  const std::vector<Timeline> timelines{timeline};
  const Walls walls = walls_of(timelines, Clocks::Shared).front().walls;
  EXPECT_NEAR(walls.compute, 3, 1e-9);
  EXPECT_NEAR(walls.communication, 1, 1e-9);
  EXPECT_NEAR(walls.slowed, 1, 1e-9);
  EXPECT_NEAR(walls.host, 0, 1e-9) << "the host had issued all of it";
  const Exposure exposure = analyse(timelines);
  EXPECT_NEAR(exposure.total.exposed_ms, 2, 1e-9);
  EXPECT_NEAR(exposure.total.reasons.short_cover_ms, 2, 1e-9);
}

}  // namespace walls_test
}  // namespace weft::trace
