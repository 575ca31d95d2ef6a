// weft bench dispatch as a user runs it, with sizes that take no time.
#include <gtest/gtest.h>

#include "tests/cli/program_support.h"
#include "weft/base/json.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/bench/dispatch_report.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/measure/runs/rounds.h"

namespace weft::cli {
namespace bench_dispatch_test {

using base::Json;

const std::string kSmall =
    "bench dispatch --experts 8 --topk 2 --ep 4 --ranks-per-node 2 --hidden 16 --tokens 32 "
    "--rounds 1 ";

TEST(BenchDispatch, JsonHasTheKeysOfTheContract) {
  const Outcome outcome = weft(kSmall + "--copy-tokens 64 --json runtime.threads_per_rank=2");
  const Json json = Json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << outcome.err;
  ASSERT_EQ(json["dispatchers"].size(), 4u);
  for (const Json& dispatcher : json["dispatchers"]) {
    for (const char* key : {"rows_local",
                            "rows_inter",
                            "bytes_local",
                            "bytes_inter",
                            "predicted_bytes_local",
                            "predicted_bytes_inter",
                            "ms",
                            "free_ms",
                            "peak_bytes",
                            "share_of_link"}) {
      EXPECT_GT(dispatcher[key], 0.0) << dispatcher["name"] << " " << key;
    }
    EXPECT_EQ(dispatcher["bytes_inter"].get<double>(),
              dispatcher["inter"]["payload_bytes"].get<double>() +
                  dispatcher["inter"]["probabilities_bytes"].get<double>() +
                  dispatcher["inter"]["metadata_bytes"].get<double>());
  }
  // Three copies, two widths, one thread and two.
  ASSERT_EQ(json["copies"].size(), 12u);
  ASSERT_EQ(json["bars"].size(), 12u) << "those of dispatchers are for one shape";
  bool all_met = true;
  for (const Json& bar : json["bars"]) {
    ASSERT_TRUE(bar["met"].is_boolean());
    all_met &= bar["met"].get<bool>();
  }
  EXPECT_EQ(outcome.code, all_met ? 0 : 1) << outcome.out;
}

TEST(BenchDispatch, TextSaysThatLinksAreEmulatedAndShowsBothNumbers) {
  const Outcome outcome =
      weft(kSmall + "--dtype fp32 --copy-tokens 0 fabric.inter_node_gb_per_second=0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"emulated fabric",
                           "between machines 0.5 GB/s",
                           "counted (predicted)",
                           "hybridep",
                           "probabilities",
                           "metadata"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("memcpy"), std::string::npos);
}

TEST(BenchDispatch, RefusesNumbersThatDoNotFitNamingAllOfThem) {
  const Outcome outcome = weft("bench dispatch --experts 6 --topk 8 --ep 4 --ranks-per-node 3");
  EXPECT_EQ(outcome.code, 2);
  for (const char* part : {"--topk 8", "--experts 6", "--ep 4", "--ranks-per-node 3"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  }
}

TEST(BenchDispatch, RefusesWhatDoesNotFitTheMachine) {
  const Outcome layer = weft("bench dispatch --ep 64 --tokens 1048576 --hidden 65536");
  EXPECT_EQ(layer.code, 2);
  EXPECT_NE(layer.err.find("this machine has"), std::string::npos) << layer.err;
  const Outcome copies = weft("bench dispatch --tokens 1 --copy-tokens 16777216 --hidden 65536");
  EXPECT_EQ(copies.code, 2);
  EXPECT_NE(copies.err.find("this machine has"), std::string::npos) << copies.err;
}

TEST(BenchDispatch, RefusesLinksThatNothingWouldEverCross) {
  const Outcome outcome = weft(kSmall + "fabric.inter_node_gb_per_second=1e-30");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("slower than any link"), std::string::npos) << outcome.err;
}

TEST(BenchDispatch, MachinesDivideTheRanksWhereNoneAreGiven) {
  EXPECT_EQ(
      weft("bench dispatch --experts 6 --topk 2 --ep 6 --hidden 16 --tokens 8 --copy-tokens 0 "
           "--rounds 1")
          .code,
      0);
}

TEST(BenchDispatch, SaysTheDefaultsItHas) {
  const std::string help = weft("bench dispatch --help").out;
  EXPECT_TRUE(help.find("=fp32") != std::string::npos || help.find("[fp32]") != std::string::npos)
      << help;  // depends on the version of the printing library
  EXPECT_NE(weft(kSmall).out.find("fp32 values"), std::string::npos);
}

// Both tokens choose one of these 30 experts on rank 1: rank 0 has no rows to expand.
TEST(BenchDispatch, LeavesOutACopyOfNothing) {
  const Outcome outcome = weft(
      "bench dispatch --experts 30 --topk 1 --ep 2 --ranks-per-node 2 --hidden 16 --tokens 2 "
      "--copy-tokens 1 --rounds 1 --json");
  EXPECT_NE(outcome.out.find("unpermute"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("expansion"), std::string::npos) << outcome.out;
}

TEST(BenchDispatch, RefusesWhatItsOptionsDecide) {
  const Outcome key = weft(kSmall + "model.hidden_size=64");
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("model.hidden_size"), std::string::npos) << key.err;
  const Outcome recipe = weft(kSmall + "tiny");
  EXPECT_EQ(recipe.code, 2);
  EXPECT_NE(recipe.err.find("takes no recipe"), std::string::npos) << recipe.err;
  EXPECT_EQ(weft(kSmall + "fabric.jitter_us=-1").code, 2);
  EXPECT_EQ(weft(kSmall + "--dtype fp16").code, 2);
}

TEST(BenchDispatch, ABarThatIsMissedDoesNotLookMet) {
  report::Bar bar{.name = "copy",
                  .value = 0.5996,
                  .limit = 0.6,
                  .kind = report::Bar::Kind::AtLeast};
  EXPECT_EQ(to_text(bar), "NOT MET copy: 0.5996, at least 0.6000");
  bar.value = 0.7;
  EXPECT_EQ(to_text(bar), "met     copy: 0.70, at least 0.60");
}

TEST(Benches, AMissedBarIsAnExitCode) {
  report::Document document;
  document.bars({{.name = "loss", .value = 1, .limit = 1}});
  EXPECT_EQ(end_bench(Format::Json, document), kGood);
  document.section("part").bars({{.name = "loss", .value = 2, .limit = 1}});
  EXPECT_EQ(end_bench(Format::Text, document), kFailed);
}

TEST(Benches, AStoppedBenchReportsNothing) {
  const auto stopped = [](ProgressLine&) -> report::Document { throw measure::Stopped{}; };
  EXPECT_EQ(run_bench(Format::Text, stopped), interrupted_code());
}

// Rows of one value cannot be copied as fast as by memcpy.
TEST(BenchDispatch, ABarThatIsMissedIsAFailure) {
  const Outcome outcome = weft(
      "bench dispatch --experts 8 --topk 2 --ep 2 --hidden 1 --tokens 8 --copy-tokens 65536 "
      "--rounds 1");
  EXPECT_NE(outcome.out.find("NOT MET"), std::string::npos) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.code, 1);
}

}  // namespace bench_dispatch_test
}  // namespace weft::cli
