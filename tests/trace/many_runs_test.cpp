// Traces of many runs and processes: each span is read once, and an error names the limit.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/trace/timeline_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/trace/chrome/chrome_read.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/partnered.h"
#include "weft/trace/exposure/walls.h"
#include "weft/trace/run_spans.h"

namespace weft::trace {
namespace many_runs_test {

// A pass over all spans per run would take minutes.
TEST(ManyRuns, EachIsAStepOfItsOwn) {
  constexpr int kRuns = 20'000;
  Hand hand(0);
  for (int run = 0; run < kRuns; ++run) {
    hand.run(run)
        .compute("0F0.route", 10.0 * run, 10.0 * run + 4)
        .communication("ep", "0F0.dispatch", 10.0 * run + 4, 10.0 * run + 6, Cover::None);
  }
  const std::vector<Timeline> timelines{hand};
  const Exposure exposure = analyse(timelines);
  ASSERT_EQ(exposure.step_ms.size(), std::size_t{kRuns});
  EXPECT_NEAR(exposure.mean_step_ms(), 6, 1e-9);
  EXPECT_NEAR(exposure.total.exposed_ms, 2, 1e-9);
  const std::vector<RankWalls> walls = walls_of(timelines, Clocks::Shared);
  EXPECT_NEAR(walls.at(0).walls.compute, 4, 1e-6);
  EXPECT_EQ(spans_by_run(timelines[0]).size(), std::size_t{kRuns});
}

// Each rank in a run of its own: ranks times runs would be 9 million.
TEST(ManyRuns, OfOtherRanksAreNotLookedFor) {
  std::vector<Timeline> timelines;
  for (int rank = 0; rank < 3000; ++rank) {
    Hand hand(rank);
    hand.run(rank).compute("0F0.route", rank, rank + 1);
    timelines.push_back(hand);
  }
  EXPECT_EQ(analyse(timelines).step_ms.size(), 3000u);
  EXPECT_NEAR(analyse(timelines, Clocks::Separate).mean_step_ms(), 1, 1e-9);
}

// Nodes that all communicate at once: the analysis counts them, without a pass per moment.
TEST(ManyRuns, CommunicationsThatLieOverEachOtherAreCounted) {
  constexpr int kNodes = 6000;
  Hand hand(0);
  for (int i = 0; i < kNodes; ++i) {
    hand.communication("ep", base::text("{}F0.dispatch", i), i, 3 * kNodes - i, Cover::None);
    hand.compute(base::text("{}F0.route", i), i + 0.25, i + 0.5);
  }
  const Exposure exposure = analyse(std::vector<Timeline>{hand});
  EXPECT_NEAR(exposure.total.communication_ms, 3 * kNodes, 1e-6);
  EXPECT_NEAR(exposure.total.exposed_ms, 3 * kNodes - 0.25 * kNodes, 1e-6);
}

TEST(ManyRuns, MoreProcessesThanARunHasRanksAreRefusedByNumber) {
  std::string content = "[";
  for (int process = 0; process <= 1 << 16; ++process) {
    content += base::text(R"({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"a"}}}})",
                          process == 0 ? "" : ",",
                          process);
  }
  std::istringstream stream(content + "]");
  try {
    parse_chrome(stream, "many.json");
    FAIL() << "it was read";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("more than 65536 processes"), std::string::npos)
        << error.what();
  }
}

}  // namespace many_runs_test
}  // namespace weft::trace
