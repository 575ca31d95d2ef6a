// Traces read back: Weft's own to the nanosecond, others as far as they tell; invalid ones are
// refused.
#include "weft/trace/chrome/chrome_read.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/trace/timeline_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/trace/chrome/chrome.h"
#include "weft/trace/exposure/exposure.h"

namespace weft::trace {
namespace chrome_read_test {

// Temporary file, removed with its owner.
class TraceFile {
 public:
  explicit TraceFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              base::text("weft_trace_{}.json", ::getpid())) {
    base::write_whole(path_, content);
  }
  ~TraceFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

ChromeTrace read(const std::string& content) { return read_chrome(TraceFile(content).path()); }

// Error of reading the text; empty: none.
std::string refusal(const std::string& content) {
  try {
    read(content);
    return "";
  } catch (const base::ConfigError& error) {
    return error.what();
  }
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

constexpr const char* kKernel =
    R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7}})";

TEST(ChromeRead, GivesBackWhatWasWritten) {
  Hand first(0), second(3);
  first.compute("0F0.route", 0, 1.5)
      .communication("ep", "0F0.dispatch", 1.5, 4, Cover::Possible, {0, 3})
      .compute("0F0.experts", 4, 6.25, {"0F0.dispatch"});
  first.last().rows = 12;
  second.communication("ep", "0F0.dispatch", 2, 4, Cover::None, {0, 3}).node("host", "x", 0, 1);
  second.run(1).compute("1D2.attention", 10, 11);
  second.last().layer = 1;
  second.last().micro_batch = 2;
  std::vector<Timeline> timelines{first, second};
  std::string text;
  write_chrome(timelines, [&](std::string_view bytes) { text += bytes; });
  const ChromeTrace trace = read(text);
  ASSERT_EQ(trace.timelines.size(), 2u);
  EXPECT_FALSE(trace.devices);
  const std::int64_t start = timelines[0].spans[0].begin_ns;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(trace.timelines[rank].rank, timelines[rank].rank);
    EXPECT_EQ(trace.timelines[rank].label, timelines[rank].label);
    for (Span& span : timelines[rank].spans) span.begin_ns -= start, span.end_ns -= start;
    EXPECT_EQ(trace.timelines[rank].spans, timelines[rank].spans) << rank;
  }
}

std::string simulated(const std::vector<Timeline>& timelines, const Shortened& shortened) {
  std::string text;
  write_simulated_chrome(timelines, "model: {}", shortened, [&](std::string_view bytes) {
    text += bytes;
  });
  return text;
}

TEST(ChromeRead, ASimulatedStepSaysWhatItShows) {
  Hand hand(0);
  hand.compute("0F0.route", 2, 4).compute("0F1.route", 4, 7).compute("0F2.route", 7, 9);
  const std::vector<Timeline> timelines{hand};
  Shortened wrote{.micro_batches = 8,
                  .shown = 3,
                  .steady = part_of(timelines, 2, 5),
                  .repeated = 5};
  const ChromeTrace trace = read(simulated(timelines, wrote));
  EXPECT_EQ(trace.simulated_config, "model: {}");
  EXPECT_EQ(trace.shortened.micro_batches, 8);
  EXPECT_EQ(trace.shortened.shown, 3);
  EXPECT_EQ(trace.shortened.repeated, 5);
  EXPECT_EQ(trace.shortened.steady, (Interval{2'000'000, 5'000'000})) << "from the first span";
  EXPECT_EQ(analyse(trace.timelines, Clocks::Shared, trace.shortened).mean_step_ms(), 22);
  const ChromeTrace whole = read(simulated(timelines, {.micro_batches = 3, .shown = 3}));
  EXPECT_FALSE(whole.shortened.is_short());
}

TEST(ChromeRead, ASimulatedStepThatContradictsItselfIsRefused) {
  Hand hand(0);
  hand.compute("0F0.route", 0, 3).compute("0F1.route", 3, 7);
  const std::vector<Timeline> timelines{hand};
  const Shortened good{.micro_batches = 8,
                       .shown = 2,
                       .steady = part_of(timelines, 1, 4),
                       .repeated = 5};
  const auto refused = [&](const auto& change) {
    Shortened bad = good;
    change(bad);
    return refusal(simulated(timelines, bad));
  };
  EXPECT_EQ(refused([](Shortened&) {}), "");
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.repeated = 0; }), "2 of 8 micro-batches"));
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.repeated = 7; }), "7 times more"));
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.shown = 0; }), "0 of 8"));
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.shown = -9; }), "-9 of 8"));
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.steady.end += 4'000'000; }), "1 to 8 ms"));
  EXPECT_TRUE(says(refused([](Shortened& bad) { bad.steady.end -= 3'500'000; }), "1 to 0.5 ms"));
  std::string text = simulated(timelines, good);
  const std::string step = "\"step_ms\":22.0";
  ASSERT_TRUE(says(text, step)) << text;
  text.replace(text.find(step), step.size(), "\"step_ms\":7.0");
  EXPECT_TRUE(says(refusal(text), "is to take 7 ms, and with what is repeated it takes 22 ms"));
  Hand twice = hand;
  twice.run(1).compute("0F0.route", 7, 8);
  EXPECT_TRUE(says(refusal(simulated(std::vector<Timeline>{twice}, good)), "more than one step"));
}

TEST(ChromeRead, ListsAndObjectsAreTraces) {
  for (const std::string& content :
       {base::text("[{}]", kKernel),
        base::text(R"({{"schemaVersion":1,"x":[[{{"a":[]}}]],"traceEvents":[{}],"z":{{}}}})",
                   kKernel)}) {
    const ChromeTrace trace = read(content);
    ASSERT_TRUE(trace.devices) << content;
    ASSERT_EQ(trace.devices->devices.size(), 1u);
    EXPECT_EQ(trace.devices->devices[0].kernels.size(), 1u);
    EXPECT_EQ(trace.devices->devices[0].kernels[0].begin_ns, 10'000);
    EXPECT_EQ(trace.devices->devices[0].kernels[0].end_ns, 15'000);
  }
}

TEST(ChromeRead, ControlCharactersAreBlanksAndSaid) {
  std::string content = base::text("[{}]", kKernel);
  content.replace(content.find("gemm"), 4, "g\x01\x1bm");
  const ChromeTrace trace = read(content);
  EXPECT_EQ(trace.devices->names, std::vector<std::string>{"g  m"});
  ASSERT_EQ(trace.notes.size(), 1u);
  EXPECT_TRUE(says(trace.notes[0], "2 control characters")) << trace.notes[0];
}

TEST(ChromeRead, ACutFileIsRefusedWithItsPlace) {
  const std::string whole = base::text("[{},\n{}]", kKernel, kKernel);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string why = refusal(whole.substr(0, length));
    EXPECT_TRUE(says(why, "byte ")) << length << ": " << why;
  }
  EXPECT_EQ(refusal(whole), "");
  EXPECT_TRUE(says(refusal(whole.substr(0, whole.size() - 3)), "after 2 events"));
}

TEST(ChromeRead, BadTimesAreRefusedWithTheirEvent) {
  const auto with = [](const char* times) {
    return base::text(R"([{},{{"ph":"X","cat":"kernel","name":"bad one",{}}}])", kKernel, times);
  };
  const std::string negative = refusal(with(R"("ts":1,"dur":-2)"));
  EXPECT_TRUE(says(negative, "event 2 ('bad one')")) << negative;
  EXPECT_TRUE(says(negative, "negative")) << negative;
  EXPECT_TRUE(says(refusal(with(R"("dur":2)")), "ts is no time"));
  EXPECT_TRUE(says(refusal(with(R"("ts":1e300,"dur":2)")), "ts is no time"));
  EXPECT_TRUE(says(refusal(with(R"("ts":1,"dur":1e300)")), "dur is no time"));
  EXPECT_EQ(refusal(with(R"("ts":-1,"dur":0)")), "");
}

TEST(ChromeRead, NonsenseIsRefusedCleanly) {
  EXPECT_TRUE(says(refusal(""), "byte "));
  EXPECT_TRUE(says(refusal("{}"), "no list traceEvents"));
  EXPECT_TRUE(says(refusal("7"), "no list traceEvents"));
  EXPECT_TRUE(says(refusal("[1]"), "no event"));
  EXPECT_TRUE(says(refusal("[]"), "of its 0 events none"));
  EXPECT_TRUE(says(refusal(R"([{"ph":"X","cat":"odd\u0007","ts":0,"dur":1}])"), "odd"));
  EXPECT_TRUE(says(refusal("[{\"args\":" + std::string(100'000, '[')), "nested deeper"));
  EXPECT_TRUE(says(refusal("\x1f\x8b\x08 packed"), "packed file"));
  EXPECT_TRUE(says(refusal("[{\"name\":\"\xff\"}]"), "byte "));
  const char* kOdd = R"([{"ph":"X","cat":"x","ts":0,"dur":1,"pid":0,"args":{"node":"a","run":0}}])";
  EXPECT_TRUE(says(refusal(kOdd), "no such category"));
  const char* kNoRank = R"([{"ph":"X","cat":"node","ts":0,"pid":-4,"args":{"node":"a","run":0}}])";
  EXPECT_TRUE(says(refusal(kNoRank), "to be a rank"));
}

TEST(ChromeRead, FieldsOfOtherTypesAreNotThere) {
  const ChromeTrace trace =
      read(R"([{"ph":["X"],"name":{},"ts":"1"},{"ph":"X","cat":"kernel","name":null,"pid":"GPU 0",)"
           R"("tid":[],"ts":1,"dur":1,"args":[1,{"stream":4}]}])");
  ASSERT_EQ(trace.devices->devices.size(), 1u);
  EXPECT_EQ(trace.devices->devices[0].kernels[0].stream, 0);
}

TEST(ChromeRead, ManyEventsAreReadInLittleTime) {
  std::string content = "[";
  constexpr int kEvents = 50'000;
  for (int i = 0; i < kEvents; ++i) {
    content += base::text(
        R"({}{{"ph":"X","cat":"kernel","name":"kernel {}","pid":0,"tid":7,"ts":{},"dur":1.5,)"
        R"("args":{{"stream":7,"correlation":{},"grid":[1,2,3],"External id":5}}}})",
        i == 0 ? "" : ",",
        i % 100,
        2 * i,
        i + 1);
  }
  const ChromeTrace trace = read(content + "]");
  EXPECT_EQ(trace.events, kEvents);
  EXPECT_EQ(trace.devices->devices[0].kernels.size(), std::size_t{kEvents});
  EXPECT_EQ(trace.devices->names.size(), 100u);
}

}  // namespace chrome_read_test
}  // namespace weft::trace
