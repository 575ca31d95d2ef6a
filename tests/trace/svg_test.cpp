#include "weft/trace/svg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/trace/timeline_support.h"
#include "tests/trace/xml_support.h"
#include "weft/base/text.h"
#include "weft/trace/activity.h"
#include "weft/trace/svg_text.h"

namespace weft::trace {
namespace svg_test {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t i = text.find(part); i != text.npos; i = text.find(part, i + 1)) ++found;
  return found;
}

Timeline small_step(int rank, double length) {
  return Hand(rank)
      .compute("0F0.attention", 0, length / 4)
      .communication("ep", "0F0.dispatch", length / 4, length / 2, Cover::None)
      .node("host", "0F0.sizes", 0, length / 4)
      .compute("0F0.experts", length / 2, length);
}

Picture two_rows() {
  return {.title = "overlap <of> \"a\" & b",
          .rows = {{.caption = "plain", .timelines = {small_step(0, 8), small_step(1, 8)}},
                   {.caption = "overlap", .timelines = {small_step(0, 4), small_step(1, 4)}}}};
}

TEST(Svg, IsWellFormedWhateverTheTexts) {
  EXPECT_EQ(find_fault(to_svg(two_rows())), "");
  EXPECT_EQ(find_fault(to_svg({})), "");
  EXPECT_EQ(find_fault(to_svg({.title = "empty", .rows = {{.caption = "<x>", .timelines = {}}}})),
            "");
  const std::string odd = "a<b>&\"c\"\x01";
  const std::string svg =
      to_svg({.title = odd,
              .rows = {{.caption = odd, .timelines = {Hand(0).node("compute", odd, 0, 1)}}}});
  EXPECT_EQ(find_fault(svg), "");
  EXPECT_EQ(svg.find('\x01'), svg.npos);
  EXPECT_EQ(count(svg, "a&lt;b&gt;&amp;&quot;c&quot;"), 3u);
}

TEST(Svg, TheFaultFinderFindsFaults) {
  EXPECT_NE(find_fault("<a><b></a></b>"), "");
  EXPECT_NE(find_fault("<a>"), "");
  EXPECT_NE(find_fault("<a>x & y</a>"), "");
}

TEST(Svg, IsTheSameEveryTime) { EXPECT_EQ(to_svg(two_rows()), to_svg(two_rows())); }

TEST(Svg, DrawsEveryNodeOfComputeAndCommunicationOnce) {
  const std::string svg = to_svg(two_rows());
  EXPECT_EQ(count(svg, "<title>0F0.attention "), 4u);
  EXPECT_EQ(count(svg, "<title>0F0.dispatch "), 4u);
  EXPECT_EQ(count(svg, "<title>"), 12u) << "operations and the host are not drawn";
  EXPECT_EQ(count(svg, "<title>0F0.experts 4 ms"), 2u);
  EXPECT_EQ(count(svg, "<title>0F0.experts 2 ms"), 2u);
  EXPECT_NE(svg.find("plain: 8.00 ms a step"), svg.npos);
  EXPECT_NE(svg.find("overlap: 4.00 ms a step"), svg.npos);
}

// Position and width of the first node with a title.
std::pair<double, double> place_of(const std::string& svg, const std::string& title) {
  const std::size_t end = svg.find("<title>" + title);
  if (end == svg.npos) return {-1, -1};
  const std::size_t begin = svg.rfind("d=\"M", end) + 4;
  const std::size_t width = svg.find('h', begin) + 1;
  return {std::stod(svg.substr(begin)), std::stod(svg.substr(width))};
}

TEST(Svg, RowsShareOneScale) {
  const std::string svg = to_svg(two_rows());
  const auto [long_x, long_width] = place_of(svg, "0F0.experts 4 ms");
  const auto [short_x, short_width] = place_of(svg, "0F0.experts 2 ms");
  EXPECT_NEAR(long_width, 2 * short_width, 0.2);
  EXPECT_NEAR(place_of(svg, "0F0.attention 2 ms").first,
              place_of(svg, "0F0.attention 1 ms").first,
              0.1);
  EXPECT_LT(short_x, long_x);
  EXPECT_LE(long_x + long_width, 1200);
}

TEST(Svg, ALongTitleTakesSeveralLinesAndNoneIsCut) {
  std::string title;
  for (int i = 0; i < 60; ++i) title += base::text("word{} ", i);
  const std::string svg = to_svg({.title = title, .rows = two_rows().rows});
  EXPECT_EQ(find_fault(svg), "");
  EXPECT_EQ(count(svg, "<text class=\"t\""), 4u);
  EXPECT_NE(svg.find("word59"), svg.npos);
  EXPECT_EQ(svg::wrapped("ab cd efghij", 5), (std::vector<std::string>{"ab cd", "efghi", "j"}));
  EXPECT_EQ(svg::wrapped("", 5), std::vector<std::string>{""});
}

TEST(Svg, FollowsTheThemeOfWhoLooksAtIt) {
  const std::string svg = to_svg(two_rows());
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), svg.npos);
  EXPECT_EQ(svg.find("fill=\"#fbfcfd\""), svg.npos) << "paper has no colour of its own";
}

// Rank 1 begins the dispatch late: rank 0 waits, and its bar shows the wait.
TEST(Svg, WaitingIsDrawnThinAndWorkBehindIt) {
  const auto rank = [](int number, double begin) {
    return Hand(number).communication("ep", "0F0.dispatch", begin, 8, Cover::None, {0, 1});
  };
  Picture picture{.title = "waits", .rows = {}};
  picture.rows.push_back({.caption = "a", .timelines = {rank(0, 0), rank(1, 6)}});
  const std::string svg = to_svg(picture);
  EXPECT_NE(svg.find("<title>0F0.dispatch 8 ms, waited 6"), svg.npos) << svg;
  EXPECT_EQ(count(svg, "stroke-opacity"), 1u);
  EXPECT_NE(svg.find("thin: it waits"), svg.npos);
  const auto [x, width] = place_of(svg, "0F0.dispatch 8 ms");
  const auto [late_x, late_width] = place_of(svg, "0F0.dispatch 2 ms");
  EXPECT_NEAR(x, late_x, 0.2);
  EXPECT_NEAR(width, late_width, 0.2);
  EXPECT_EQ(to_svg(two_rows()).find("it waits"), std::string::npos) << "a legend of what is there";
}

// The window ends before rank 1 sends: the receive of rank 0 has moved no data.
TEST(Svg, AReceiveWhoseSendIsNotThereWaits) {
  const Timeline receive =
      Hand(0).communication("pp_receive_next", "D0.receive", 0, 8, Cover::None, {0, 1});
  const Timeline other = Hand(1).compute("0F0.mlp", 0, 8);
  Picture picture{.title = "part", .rows = {}};
  picture.rows.push_back({.caption = "a", .timelines = {receive, other}});
  EXPECT_NE(to_svg(picture).find("D0.receive 8 ms, waited 8"), std::string::npos);
  picture.rows[0].timelines.pop_back();
  EXPECT_EQ(to_svg(picture).find("waited"), std::string::npos) << "of a rank without a timeline";
}

TEST(Svg, AWindowCutsWhatReachesOutOfIt) {
  const std::string svg = to_svg(two_rows(), {.from_ms = 3, .to_ms = 5});
  EXPECT_EQ(find_fault(svg), "");
  EXPECT_EQ(count(svg, "<title>0F0.attention "), 0u);
  EXPECT_EQ(count(svg, "<title>0F0.experts 4 ms"), 2u);
  const auto [x, width] = place_of(svg, "0F0.experts 4 ms");
  const auto [from, dispatch_width] = place_of(svg, "0F0.dispatch 2 ms");
  EXPECT_NEAR(width, dispatch_width, 0.2) << "one of two milliseconds each";
  EXPECT_NEAR(x, from + dispatch_width, 0.2);
}

TEST(Svg, TheAxisStartsAtNothingAndLanesEndWithTheirStep) {
  const std::string svg = to_svg(two_rows());
  EXPECT_NE(svg.find(">0</text>"), svg.npos);
  EXPECT_EQ(svg.find(">-0</text>"), svg.npos);
  std::set<double> ends;  // of the lanes' bands
  for (std::size_t i = svg.find("class=\"lane\""); i != svg.npos;
       i = svg.find("class=\"lane\"", i + 1)) {
    ends.insert(std::stod(svg.substr(svg.find('H', i) + 1)));
  }
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_NEAR(*ends.rbegin(), 1184, 0.1);
  EXPECT_LT(*ends.begin(), 800);
}

TEST(Svg, DrawsTheLastRunUnlessTold) {
  const Picture picture{
      .title = "runs",
      .rows = {
          {.caption = "r",
           .timelines = {Hand(0).compute("0F0.mlp", 0, 9).run(1).compute("0F0.mlp", 100, 103)}}}};
  EXPECT_NE(to_svg(picture).find("r: 3.00 ms a step"), std::string::npos);
  EXPECT_NE(to_svg(picture, {.run = 0}).find("r: 9.00 ms a step"), std::string::npos);
}

TEST(Svg, ThreeThousandSpansStaySmall) {
  Picture picture{.title = "big", .rows = {}};
  for (const char* caption : {"plain", "overlap", "overlap + delayed"}) {
    Picture::Row& row = picture.rows.emplace_back();
    row.caption = caption;
    for (int rank = 0; rank < 4; ++rank) {
      Hand hand(rank);
      for (int i = 0; i < 125; ++i) {
        hand.compute(base::text("{}F{}.attention", i % 24, i), i, i + 0.71234);
        hand.communication("ep",
                           base::text("{}D{}.dispatch", i % 24, i),
                           i + 0.7,
                           i + 1,
                           Cover::None);
      }
      row.timelines.push_back(hand);
    }
  }
  const std::string svg = to_svg(picture);
  EXPECT_EQ(count(svg, "<title>"), 3000u);
  EXPECT_LT(svg.size(), 300'000u);
}

TEST(Svg, ColoursFollowLaneDirectionAndPiece) {
  const auto activity = [](const char* lane, const char* name) {
    return activity_of({.name = name, .node = name, .lane = lane});
  };
  EXPECT_EQ(activity("compute", "3F7.attention.core"), Activity::ForwardAttention);
  EXPECT_EQ(activity("compute", "F7.embed"), Activity::ForwardAttention);
  EXPECT_EQ(activity("compute", "13F7.experts#2"), Activity::ForwardExperts);
  EXPECT_EQ(activity("compute", "3F7.mlp"), Activity::ForwardExperts);
  EXPECT_EQ(activity("compute", "3D7.experts"), Activity::Backward);
  EXPECT_EQ(activity("compute", "3W7.attention"), Activity::WeightGradient);
  EXPECT_EQ(activity("compute", "3R7.attention"), Activity::Recompute);
  EXPECT_EQ(activity("compute", "optimizer"), Activity::StepEnd);
  EXPECT_EQ(activity("ep", "3D7.dispatch"), Activity::Dispatch);
  EXPECT_EQ(activity("ep", "3F7.combine"), Activity::Combine);
  EXPECT_EQ(activity("dp", "reduce.dense#2"), Activity::OtherCommunication);
  EXPECT_EQ(activity("pp_send_next", "c1F3.send"), Activity::OtherCommunication);
  // Without expert parallelism a dispatch is compute.
  EXPECT_EQ(activity("compute", "3F7.dispatch"), Activity::ForwardAttention);
}

TEST(Svg, ALaneOnWhichNothingIsShownIsLeftOutAndTheCaptionNamesTheWindow) {
  const std::string whole = to_svg(two_rows());
  EXPECT_EQ(whole.find("are shown"), whole.npos);
  const std::string svg = to_svg(two_rows(), {.from_ms = 0, .to_ms = 0.5});
  EXPECT_EQ(count(svg, ">ep<"), 0u) << "dispatch begins later";
  EXPECT_EQ(count(svg, ">compute<"), 4u);
  EXPECT_NE(svg.find("plain: 8.00 ms a step, of which 0 to 0.5 ms are shown"), svg.npos) << svg;
}

TEST(Svg, ARankKeepsItsNameWhereItsFirstLaneIsLeftOut) {
  const std::string svg = to_svg(two_rows(), {.from_ms = 2.5, .to_ms = 3.5});
  EXPECT_EQ(count(svg, ">[R0]<"), 2u) << svg;
}

TEST(Svg, APartOfAStepKeepsItsPlaceInIt) {
  const Timeline part = Hand(0).compute("0F0.experts", 6, 8);
  const std::int64_t begin_ns = part.spans.front().begin_ns - 6'000'000;
  Picture picture{.title = "part", .rows = {}};
  picture.rows.push_back(
      {.caption = "part",
       .timelines = {part},
       .step = Picture::Row::Extent{.begin_ns = begin_ns, .end_ns = begin_ns + 8'000'000}});
  const std::string svg = to_svg(picture);
  EXPECT_NE(svg.find("part: 8.00 ms a step"), svg.npos);
  const auto [x, width] = place_of(svg, "0F0.experts");
  EXPECT_NEAR(x + width, 1184, 0.5) << "the last quarter";
  EXPECT_LT(width, 300);
}

}  // namespace svg_test
}  // namespace weft::trace
