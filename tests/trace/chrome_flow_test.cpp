// Arrows, tracks and arguments of the Chrome trace.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/trace/timeline_support.h"
#include "weft/base/json.h"
#include "weft/trace/chrome/chrome.h"

namespace weft::trace {
namespace chrome_flow_test {

using base::Json;

std::vector<Json> events_of(std::span<const Timeline> timelines, const std::string& phase) {
  std::string text;
  write_chrome(timelines, [&](std::string_view bytes) { text += bytes; });
  const Json trace = Json::parse(text);
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

// Pipeline of two ranks, two runs.
std::vector<Timeline> pipeline() {
  Hand first(0), second(1);
  for (const int run : {0, 1}) {
    const double t = 100 * run;
    first.run(run)
        .compute("0F0.route", t, t + 1)
        .communication("ep", "0F0.counts", t + 1, t + 2, Cover::None, {0})
        .node("host", "0F0.sizes", t, t + 2.5, {"0F0.counts"})
        .compute("0F0.permute", t + 3, t + 4, {"0F0.sizes", "0F0.empty"})
        .communication("pp_send_next", "c0F0.send", t + 4, t + 8, Cover::None, {0, 1});
    first.last().after = {"0F0.permute"};
    first.last().bytes = 4096;
    first.last().micro_batch = 0;
    second.run(run)
        .communication("pp_receive_previous", "c1F0.receive", t, t + 8, Cover::Possible, {0, 1});
    second.last().operation = "c0F0.send";
    second.compute("1F0.attention", t + 8, t + 9, {"c1F0.receive"});
    second.last().layer = 1;
    second.last().micro_batch = 0;
    second.last().rows = 12;
  }
  return {first, second};
}

// Nodes of the innermost slices of a track at a time.
std::set<std::string> nodes_at(const std::vector<Json>& slices, const Json& end) {
  std::set<std::string> names;
  for (const Json& slice : slices) {
    const double ts = slice.at("ts"), time = end.at("ts");
    if (slice.at("pid") != end.at("pid") || slice.at("tid") != end.at("tid")) continue;
    if (ts <= time && time < ts + slice.at("dur").get<double>()) {
      names.insert(slice.at("args").at("node").get<std::string>());
    }
  }
  return names;
}

TEST(ChromeFlow, EveryArrowStartsAndEndsInsideTheSlicesItJoins) {
  const std::vector<Timeline> timelines = pipeline();
  const std::vector<Json> slices = events_of(timelines, "X");
  std::map<int, Json> starts, ends;
  for (const Json& event : events_of(timelines, "s")) {
    EXPECT_TRUE(starts.emplace(event.at("id").get<int>(), event).second) << "an id twice";
  }
  for (const Json& event : events_of(timelines, "f")) {
    EXPECT_EQ(event.at("bp"), "e");
    EXPECT_TRUE(ends.emplace(event.at("id").get<int>(), event).second) << "an id twice";
  }
  std::multiset<std::string> arrows;
  for (const auto& [id, start] : starts) {
    ASSERT_TRUE(ends.contains(id));
    const Json& end = ends.at(id);
    EXPECT_EQ(start.at("name"), end.at("name"));
    EXPECT_EQ(start.at("cat"), end.at("cat"));
    EXPECT_LE(start.at("ts").get<double>(), end.at("ts").get<double>());
    const std::set<std::string> from = nodes_at(slices, start), to = nodes_at(slices, end);
    ASSERT_EQ(from.size(), 1u);
    ASSERT_EQ(to.size(), 1u);
    arrows.insert(start.at("name").get<std::string>() + " " + *from.begin() + " " + *to.begin());
  }
  EXPECT_EQ(ends.size(), starts.size());
  const std::set<std::string> once{"wait 0F0.counts 0F0.sizes",
                                   "wait 0F0.sizes 0F0.permute",
                                   "wait 0F0.permute c0F0.send",
                                   "message c0F0.send c1F0.receive",
                                   "wait c1F0.receive 1F0.attention"};
  EXPECT_EQ(std::set<std::string>(arrows.begin(), arrows.end()), once);
  EXPECT_EQ(arrows.size(), 2 * once.size()) << "one a run";
}

TEST(ChromeFlow, NoArrowGoesBackInTime) {
  // Different clocks: the message seems to arrive before it is sent.
  Hand receiver(1);
  receiver.communication("pp_receive_previous", "c1F0.receive", 0, 1, Cover::None, {0, 1});
  receiver.last().operation = "c0F0.send";
  const std::vector<Timeline> timelines{
      Hand(0).communication("pp_send_next", "c0F0.send", 5, 6, Cover::None, {0, 1}),
      receiver};
  EXPECT_TRUE(events_of(timelines, "s").empty());
  EXPECT_TRUE(events_of(timelines, "f").empty());
}

TEST(ChromeFlow, EverySliceIsOnANamedTrackOfANamedProcess) {
  const std::vector<Timeline> timelines = pipeline();
  std::set<int> processes;
  std::set<std::pair<int, int>> tracks, sorted;
  for (const Json& event : events_of(timelines, "M")) {
    const std::pair<int, int> track{event.at("pid"), event.at("tid")};
    if (event.at("name") == "process_name") processes.insert(track.first);
    if (event.at("name") == "thread_name") tracks.insert(track);
    if (event.at("name") == "thread_sort_index") sorted.insert(track);
  }
  EXPECT_EQ(tracks, sorted);
  const std::vector<Json> slices = events_of(timelines, "X");
  EXPECT_FALSE(slices.empty());
  for (const Json& slice : slices) {
    EXPECT_TRUE(processes.contains(slice.at("pid")));
    EXPECT_TRUE(tracks.contains({slice.at("pid"), slice.at("tid")}));
  }
}

TEST(ChromeFlow, TracksComeInOneOrderWhateverRanFirst) {
  const std::vector<std::string> lanes{"compute",
                                       "ep",
                                       "dp",
                                       "tp",
                                       "cp",
                                       "pp_receive_previous",
                                       "pp_send_next",
                                       "copy",
                                       "host",
                                       "odd"};
  Hand hand(0);
  for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) hand.node(*lane, "x", 0, 1);
  std::map<int, std::string> names;
  std::map<int, int> order;  // track by its sort index
  const std::vector<Timeline> timelines{hand};
  for (const Json& event : events_of(timelines, "M")) {
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "thread_sort_index") {
      order[event.at("args").at("sort_index")] = event.at("tid");
    }
  }
  std::vector<std::string> shown;
  for (const auto& [index, tid] : order) shown.push_back(names.at(tid));
  EXPECT_EQ(shown, lanes);
}

TEST(ChromeFlow, ArgumentsSayLayerMicroBatchBytesAndRows) {
  std::map<std::string, Json> args;
  for (const Json& slice : events_of(pipeline(), "X")) {
    if (slice.at("cat") == "node") args[slice.at("name")] = slice.at("args");
  }
  EXPECT_EQ(args.at("1F0.attention"),
            Json::parse(R"({"node":"1F0.attention","run":1,"layer":1,"micro_batch":0,"rows":12,
                            "after":["c1F0.receive"]})"));
  EXPECT_EQ(args.at("c0F0.send"),
            Json::parse(
                R"({"node":"c0F0.send","run":1,"micro_batch":0,"bytes":4096,"coverable":false,
                    "after":["0F0.permute"],"operation":"c0F0.send","members":[0,1]})"));
}

TEST(ChromeFlow, NumbersOfTracesOfDifferentRanksDiffer) {
  const std::vector<Timeline> ranks = pipeline();
  std::set<std::int64_t> first, second;
  for (const Json& event : events_of({&ranks[0], 1}, "s"))
    first.insert(event.at("id").get<std::int64_t>());
  for (const Json& event : events_of({&ranks[1], 1}, "s"))
    second.insert(event.at("id").get<std::int64_t>());
  ASSERT_FALSE(first.empty());
  ASSERT_FALSE(second.empty());
  for (const std::int64_t id : second) EXPECT_FALSE(first.contains(id)) << id;
}

}  // namespace chrome_flow_test
}  // namespace weft::trace
