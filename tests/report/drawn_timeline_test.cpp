// Drawing of a trace on a page.
#include "weft/report/drawn_timeline.h"

#include <gtest/gtest.h>

#include "tests/trace/timeline_support.h"

namespace weft::report {
namespace drawn_timeline_test {

Evidence of(std::vector<trace::Timeline> timelines) {
  Evidence evidence;
  evidence.timelines = std::move(timelines);
  return evidence;
}

TEST(DrawnTimeline, IsTheLastStepOfEveryRank) {
  trace::Hand first(0), second(7);
  first.compute("0F0.route", 0, 1).run(1).compute("0F0.route", 10, 12).compute("1F0.route", 12, 13);
  second.run(1).communication("ep", "0F0.dispatch", 11, 15, trace::Cover::None);
  const DrawnTimeline drawn = draw_timeline(of({first, second}));
  ASSERT_EQ(drawn.lanes.size(), 2u);
  EXPECT_EQ(drawn.lanes[0].group, "rank 0");
  EXPECT_EQ(drawn.lanes[0].name, "compute");
  EXPECT_EQ(drawn.lanes[1].group, "rank 7");
  EXPECT_EQ(drawn.lanes[1].name, "ep");
  ASSERT_EQ(drawn.lanes[0].spans.size(), 2u);
  EXPECT_EQ(drawn.lanes[0].spans[0].begin_ns, 0);
  EXPECT_EQ(drawn.lanes[1].spans[0].begin_ns, 1'000'000);
  EXPECT_EQ(drawn.end_ns, 5'000'000);
  EXPECT_EQ(drawn.names, (std::vector<std::string>{"0F0.route", "1F0.route", "0F0.dispatch"}));
}

TEST(DrawnTimeline, ShortNeighboursOfOneKindStandTogetherAndNoTimeIsLost) {
  DrawnTimeline timeline{.kinds = {},
                         .names = {},
                         .lanes = {{.group = "", .name = "a", .spans = {}}}};
  for (int i = 0; i < 1000; ++i) {
    timeline.lanes[0].spans.push_back(
        {.kind = i < 500 ? 0 : 1, .begin_ns = 10 * i, .end_ns = 10 * i + 8});
  }
  timeline.end_ns = 9998;
  thin_out(timeline, 100);
  const std::vector<DrawnSpan>& spans = timeline.lanes[0].spans;
  EXPECT_LE(spans.size(), 100u);
  EXPECT_GE(spans.size(), 2u);
  std::int64_t count = 0;
  for (const DrawnSpan& span : spans) {
    count += span.count;
    EXPECT_EQ(span.kind, span.begin_ns < 5000 ? 0 : 1);
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(spans.front().begin_ns, 0);
  EXPECT_EQ(spans.back().end_ns, 9998);
  EXPECT_NE(timeline.note.find("Of 1000 spans"), timeline.note.npos);
}

TEST(DrawnTimeline, KindsThatTakeTurnsJoinUnderTheLongest) {
  DrawnTimeline timeline{.kinds = {},
                         .names = {},
                         .lanes = {{.group = "", .name = "a", .spans = {}}}};
  for (int i = 0; i < 1000; ++i) {
    timeline.lanes[0].spans.push_back(
        {.kind = i % 2, .begin_ns = 10 * i, .end_ns = 10 * i + 4 + 4 * (i % 2)});
  }
  timeline.end_ns = 9998;
  thin_out(timeline, 100);
  const std::vector<DrawnSpan>& spans = timeline.lanes[0].spans;
  EXPECT_LE(spans.size(), 100u);
  EXPECT_GE(spans.size(), 20u);
  EXPECT_EQ(spans.front().begin_ns, 0);
  EXPECT_EQ(spans.back().end_ns, 9998);
  for (const DrawnSpan& span : spans) EXPECT_EQ(span.kind, 1);
}

// A receive that begins before its send, and a host node that ends with its awaited node.
TEST(DrawnTimeline, WaitingIsNotDrawnAsWork) {
  trace::Hand first(0), second(1);
  first.communication("ep", "0F0.dispatch", 1, 9, trace::Cover::None, {0, 1})
      .node("host", "0F0.sizes", 0, 9.5, {"0F0.dispatch"});
  second.communication("ep", "0F0.dispatch", 7, 9, trace::Cover::None, {0, 1});
  const DrawnTimeline drawn = draw_timeline(of({first, second}));
  ASSERT_EQ(drawn.lanes.size(), 3u);
  EXPECT_EQ(drawn.lanes[0].spans[0].waited_ns, 6'000'000) << "until the other rank begins";
  EXPECT_EQ(drawn.lanes[1].spans[0].waited_ns, 9'000'000) << "until the dispatch is over";
  EXPECT_EQ(drawn.lanes[2].spans[0].waited_ns, 0) << "the last one waits for none";
}

TEST(DrawnTimeline, NothingIsStillATimeline) {
  const base::Json json = to_json(draw_timeline({}));
  EXPECT_TRUE(json["spans"]["lane"].empty());
  EXPECT_EQ(json["end_ns"], 1);
}

}  // namespace drawn_timeline_test
}  // namespace weft::report
