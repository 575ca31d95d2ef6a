#include "weft/trace/chrome/chrome.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "weft/base/json.h"

namespace weft::trace {
namespace chrome_test {

using base::Json;

constexpr std::int64_t kLate = 9'000'000'000'000;  // a steady clock starts anywhere

Span span_of(const std::string& name,
             const std::string& lane,
             std::int64_t begin_ns,
             std::int64_t end_ns) {
  return {.name = name,
          .node = name,
          .lane = lane,
          .kind = SpanKind::Node,
          .begin_ns = kLate + begin_ns,
          .end_ns = kLate + end_ns};
}

std::vector<Timeline> two_ranks() {
  return {{.rank = 0,
           .label = "[PP00-DP00-EP00]",
           .spans = {span_of("0F0.route", "compute", 2'500, 4'000),
                     span_of("0F0.counts", "ep", 4'000, 9'250),
                     span_of("0F0.permute", "compute", 4'100, 4'101)}},
          {.rank = 3,
           .label = "[PP00-DP00-EP01]",
           .spans = {span_of("0F0.counts", "ep", 1'000, 9'000),
                     span_of("0F0.sizes", "host", 1'000, 1'000)}}};
}

Json parse(std::span<const Timeline> timelines) {
  std::string text;
  write_chrome(timelines, [&](std::string_view bytes) { text += bytes; });
  return Json::parse(text);
}

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(Chrome, AProcessPerRank) {
  std::map<int, std::string> names;
  for (const Json& event : events_of(parse(two_ranks()), "M")) {
    if (event.at("name") == "process_name") {
      names[event.at("pid")] = event.at("args").at("name").get<std::string>();
    }
  }
  EXPECT_EQ(
      names,
      (std::map<int, std::string>{{0, "[PP00-DP00-EP00] rank 0"}, {3, "[PP00-DP00-EP01] rank 3"}}));
}

TEST(Chrome, AThreadPerLaneOfARank) {
  const Json trace = parse(two_ranks());
  std::map<std::pair<int, int>, std::string> lanes;
  for (const Json& event : events_of(trace, "M")) {
    if (event.at("name") != "thread_name") continue;
    const std::string lane = event.at("args").at("name");
    EXPECT_TRUE(lanes.emplace(std::pair(event.at("pid"), event.at("tid")), lane).second);
  }
  EXPECT_EQ(lanes.size(), 4u);
  std::map<std::string, std::string> lane_of_node;
  for (const Json& event : events_of(trace, "X")) {
    const std::string node = event.at("args").at("node");
    lane_of_node[node] = lanes.at({event.at("pid"), event.at("tid")});
  }
  EXPECT_EQ(lane_of_node,
            (std::map<std::string, std::string>{{"0F0.route", "compute"},
                                                {"0F0.permute", "compute"},
                                                {"0F0.counts", "ep"},
                                                {"0F0.sizes", "host"}}));
}

TEST(Chrome, TimesAreMicrosecondsFromTheEarliestSpanOfAllRanks) {
  const std::vector<Json> events = events_of(parse(two_ranks()), "X");
  ASSERT_EQ(events.size(), 5u);
  const auto time = [&](std::size_t i, const char* key) { return events[i].at(key).get<double>(); };
  EXPECT_DOUBLE_EQ(time(0, "ts"), 1.5);
  EXPECT_DOUBLE_EQ(time(0, "dur"), 1.5);
  EXPECT_DOUBLE_EQ(time(1, "dur"), 5.25);
  EXPECT_DOUBLE_EQ(time(2, "dur"), 0.001);
  EXPECT_DOUBLE_EQ(time(3, "ts"), 0);
  EXPECT_DOUBLE_EQ(time(4, "dur"), 0);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_GE(time(i, "ts"), 0);
    EXPECT_GE(time(i, "dur"), 0);
  }
}

TEST(Chrome, KindsAreCategories) {
  Timeline timeline{.rank = 0, .label = "x", .spans = {}};
  std::set<std::string> expected;
  for (const SpanKind kind : {SpanKind::Node,
                              SpanKind::Gemm,
                              SpanKind::Attention,
                              SpanKind::Memory,
                              SpanKind::Copy,
                              SpanKind::Communication,
                              SpanKind::Host}) {
    Span span = span_of("x", "compute", 0, 1);
    span.kind = kind;
    timeline.spans.push_back(span);
    expected.emplace(word(kind));
  }
  std::set<std::string> found;
  for (const Json& event : events_of(parse(std::vector{timeline}), "X")) {
    found.insert(event.at("cat").get<std::string>());
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), 7u);
}

TEST(Chrome, OddCharactersSurvive) {
  const std::string odd = "quote \" slash \\ line\nbreak\ttab \x01 \xce\xb4 end";
  const std::vector<Timeline> timelines{
      {.rank = 0, .label = odd, .spans = {span_of(odd, odd, 0, 1)}}};
  const Json trace = parse(timelines);
  const std::vector<Json> events = events_of(trace, "X");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at("name"), odd);
  EXPECT_EQ(events[0].at("args").at("node"), odd);
  EXPECT_EQ(events_of(trace, "M")[0].at("args").at("name"), odd + " rank 0");
}

TEST(Chrome, BytesThatAreNotTextAreReplaced) {
  const std::vector<Timeline> timelines{
      {.rank = 0, .label = "x", .spans = {span_of("a\xff\xc3z", "compute", 0, 1)}}};
  const std::string name = events_of(parse(timelines), "X").at(0).at("name");
  EXPECT_EQ(name.front(), 'a');
  EXPECT_EQ(name.back(), 'z');
}

TEST(Chrome, NoTimelinesAndNoSpansAreStillATrace) {
  EXPECT_TRUE(parse({}).at("traceEvents").empty());
  const std::vector<Timeline> silent{{.rank = 1, .label = "x", .spans = {}}};
  EXPECT_TRUE(events_of(parse(silent), "X").empty());
}

TEST(Chrome, AMarkerStandsWhereEachStepOfARankBegins) {
  std::vector<Timeline> timelines = two_ranks();
  Span later = span_of("0F0.route", "compute", 20'000, 21'000);
  later.run = 1;
  timelines.front().spans.push_back(later);
  std::map<std::pair<int, std::string>, double> markers;
  for (const Json& event : events_of(parse(timelines), "i")) {
    markers[{event.at("pid"), event.at("name")}] = event.at("ts");
  }
  EXPECT_EQ(markers,
            (std::map<std::pair<int, std::string>, double>{{{0, "traced step 1"}, 1.5},
                                                           {{0, "traced step 2"}, 19},
                                                           {{3, "traced step 1"}, 0}}));
}

}  // namespace chrome_test
}  // namespace weft::trace
