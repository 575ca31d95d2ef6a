// weft schedule as a user runs it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/schedule/text/text.h"

namespace weft::cli {
namespace schedule_test {

namespace fs = std::filesystem;
using base::Json;

const std::string kOverlap = " comm_overlap.overlap_moe_expert_parallel_comm=true";
const std::string kPipeline =
    " model.pipeline_model_parallel_size=2 model.virtual_pipeline_model_parallel_size=1";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Json json_of(const std::string& arguments) {
  const Outcome outcome = weft("schedule " + arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

class Schedule : public ::testing::Test {
 protected:
  Schedule()
      : folder_(fs::path(::testing::TempDir()) / base::text("weft_schedule_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Schedule() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Written schedules with one part replaced; the part must exist.
  void write_changed(const std::string& arguments, const std::string& from, const std::string& to) {
    const Outcome written = weft("schedule " + arguments + " --write " + path("orders"));
    ASSERT_EQ(written.code, 0) << written.err;
    std::string text = base::read_text(path("orders/rank0.txt"));
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    base::write_whole(path("orders/rank0.txt"), text.replace(at, from.size(), to));
  }

  const fs::path folder_;
};

TEST_F(Schedule, JsonHasTheKeysOfTheContract) {
  const Json json = json_of("tiny" + kPipeline);
  EXPECT_EQ(json["valid"], true);
  EXPECT_GT(json["step_ms"], 0.0);
  EXPECT_EQ(json["complaints"], Json::array());
  ASSERT_EQ(json["ranks"].size(), 2u);
  const Json &first = json["ranks"][0], &second = json["ranks"][1];
  EXPECT_EQ(json["nodes"].get<int>(), first["nodes"].get<int>() + second["nodes"].get<int>());
  EXPECT_EQ(json["peak_activation_bytes"].get<std::int64_t>(),
            std::max(first["peak_activation_bytes"].get<std::int64_t>(),
                     second["peak_activation_bytes"].get<std::int64_t>()));
  EXPECT_EQ(second["turns"], "F0.0 B0.0 F1.0 B1.0");
}

TEST_F(Schedule, TextShowsTurnsGridAndVerdict) {
  const Outcome shown = weft("schedule tiny" + kOverlap + kPipeline);
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.err, "W24")) << shown.err;
  for (const char* part : {"4 ranks (pp 2, ep 2), 4 layers, 2 micro-batches\n",
                           "order: forward beside backward",
                           "F0.0 [F1.0|B0.0] B1.0\n",
                           "\nrank 0   compute  |F",
                           "\n         ep       |",
                           "\n         pp       |",
                           "\nrank 1   compute  |.",
                           " ms\n",
                           "\nverified: yes; ",
                           "\nstep: ",
                           "costs nominal: 1e+12 FLOP/s, 50 GB/s links",
                           "exposed "}) {
    EXPECT_TRUE(contains(shown.out, part)) << part << "\nis not in\n" << shown.out;
  }
}

TEST_F(Schedule, LongTurnsAreCutInTheMiddle) {
  const Outcome shown = weft("schedule tiny train.global_batch_size=400");
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.out, "rank 0   F0.0 B0.0 F1.0")) << shown.out;
  EXPECT_TRUE(contains(shown.out, " ... ")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "F99.0 B99.0\n")) << shown.out;
}

TEST_F(Schedule, OverlapHidesCommunicationAndIsFaster) {
  const std::string arguments = "tiny train.global_batch_size=32 --gbps 5";
  const Json plain = json_of(arguments), overlapped = json_of(arguments + kOverlap);
  EXPECT_LT(overlapped["step_ms"], plain["step_ms"]);
  EXPECT_GT(overlapped["exposure"]["hidden_any"], plain["exposure"]["hidden_any"]);
  EXPECT_GT(overlapped["peak_activation_bytes"], plain["peak_activation_bytes"]);
}

// Sums and gathers would add 30 % to the step. Overlap leaves at most 5 %, for any bucket size.
TEST_F(Schedule, BucketsOfAnySizeHideTheSumsOfGradients) {
  const auto step_ms = [](const std::string& more) {
    return json_of("overlap_bench_dp " + more)["step_ms"].get<double>();
  };
  const std::string apart =
      " comm_overlap.overlap_grad_reduce=false comm_overlap.overlap_param_gather=false";
  const std::string slow = " --gbps=4.35", free = " --gbps=100000";
  const double alone = step_ms(free + apart);
  EXPECT_NEAR(step_ms(slow + apart), 1.3 * alone, 0.03 * alone);
  for (const char* size : {"1", "1000", "100000", "500000", "2000000", "1000000000", "null"}) {
    EXPECT_LE(step_ms(slow + " comm_overlap.bucket_size=" + size), 1.05 * alone) << size;
  }
}

TEST_F(Schedule, LayoutsFarLargerThanThisMachineAreSimulated) {
  const Json json = json_of(
      "world=128 model.num_layers=48 model.num_moe_experts=64 model.hidden_size=4096 "
      "model.moe_ffn_hidden_size=16384 model.pipeline_model_parallel_size=8 "
      "model.virtual_pipeline_model_parallel_size=2 model.expert_model_parallel_size=16 "
      "train.micro_batch_size=1 train.global_batch_size=1024" +
      kOverlap);
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["ranks"].size(), 8u);
  EXPECT_EQ(json["micro_batches"], 64);
  EXPECT_GT(json["nodes"], 48 * 64 * 9);
}

TEST_F(Schedule, TheGraphTextParsesBack) {
  const Outcome first = weft("schedule tiny" + kPipeline + " --text");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("compute  F0.embed\n")) << first.out;
  EXPECT_EQ(schedule::print(schedule::parse_graph(first.out)), first.out);
  const Outcome second = weft("schedule tiny" + kPipeline + " --text 1");
  EXPECT_TRUE(contains(second.out, "c1F0.receive\n")) << second.out;
  const Outcome third = weft("schedule tiny" + kPipeline + " --text 2");
  EXPECT_EQ(third.code, 2);
  EXPECT_TRUE(contains(third.err, "0 to 1")) << third.err;
}

TEST_F(Schedule, WrittenSchedulesAreReadBack) {
  const std::string orders = path("orders");
  const Json written = json_of("tiny" + kPipeline + kOverlap + " --write " + orders);
  const Json read = json_of("tiny" + kPipeline + " --read " + orders);
  EXPECT_EQ(read["step_ms"], written["step_ms"]);
  EXPECT_EQ(read["ranks"], written["ranks"]);
  EXPECT_NE(read["ranks"], json_of("tiny" + kPipeline)["ranks"]);
  EXPECT_EQ(json_of("tiny" + kPipeline + " runtime.schedule=" + orders)["ranks"], read["ranks"]);
}

TEST_F(Schedule, ATextThatDoesNotParseIsWrongInput) {
  write_changed("tiny", "compute  0F0.route\n", "compute  0F0.rout\n");
  const Outcome wrong = weft("schedule tiny --read " + path("orders"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_TRUE(contains(wrong.err, path("orders/rank0.txt") + ": schedule line 3: ")) << wrong.err;
  EXPECT_EQ(weft("schedule tiny --read " + path("nowhere")).code, 2);
}

TEST_F(Schedule, AWrongGraphIsAVerdict) {
  write_changed("tiny", "compute  0W0.route\n", "");
  const std::string read = "schedule tiny --read " + path("orders");
  const Outcome wrong = weft(read + " --json --svg " + path("step.svg"));
  EXPECT_EQ(wrong.code, 1) << wrong.err;
  const Json json = Json::parse(wrong.out);
  EXPECT_EQ(json["valid"], false);
  EXPECT_TRUE(json["step_ms"].is_null());
  ASSERT_EQ(json["complaints"].size(), 1u);
  EXPECT_TRUE(contains(json["complaints"][0], "0W0.route is missing")) << json;
  EXPECT_FALSE(fs::exists(path("step.svg")));
  const Outcome shown = weft(read);
  EXPECT_EQ(shown.code, 1);
  EXPECT_TRUE(contains(shown.out, "verified: no")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "0W0.route is missing")) << shown.out;
  EXPECT_TRUE(contains(shown.out, ">0W0.route<")) << shown.out;
  EXPECT_FALSE(contains(shown.out, "step: ")) << shown.out;
}

TEST_F(Schedule, APictureIsDrawn) {
  ASSERT_EQ(weft("schedule tiny --svg " + path("step.svg")).code, 0);
  EXPECT_TRUE(contains(base::read_text(path("step.svg")), "<svg"));
}

TEST_F(Schedule, OneMicroBatchIsAWarning) {
  const Outcome one = weft("schedule tiny train.global_batch_size=4" + kOverlap);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.err.starts_with("warning: ")) << one.err;
  EXPECT_TRUE(contains(one.err, "nothing can overlap")) << one.err;
}

TEST_F(Schedule, CostsComeFromAFile) {
  base::write_whole(path("none.json"), R"({"ranks": []})");
  const Outcome none = weft("schedule tiny --costs " + path("none.json"));
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "no costs of rank 0")) << none.err;
  base::write_whole(path("one.json"),
                    R"({"ranks": [{"rank": 0, "costs": {"F.embed": {"seconds": 1,
                        "kind": "memory"}}}]})");
  const Outcome one = weft("schedule tiny --costs " + path("one.json"));
  EXPECT_EQ(one.code, 2);
  EXPECT_TRUE(contains(one.err, "no cost for 0F.attention")) << one.err;
  EXPECT_EQ(weft("schedule tiny --costs " + path("gone.json")).code, 2);
  for (const char* given : {"--costs ", "--calibration "}) {
    for (const char* nominal : {" --flops 1e12", " --gbps 1"}) {
      const Outcome both = weft("schedule tiny " + (given + path("one.json")) + nominal);
      EXPECT_EQ(both.code, 2) << given << nominal;
      EXPECT_TRUE(contains(both.err, given)) << both.err;
    }
  }
}

TEST_F(Schedule, WhatIsNotBuiltIsLeftOutAndSaid) {
  const Outcome shown = weft("schedule tiny world=4 model.tensor_model_parallel_size=2");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.err, "not built yet: tensor parallelism")) << shown.err;
}

TEST_F(Schedule, WhatIsNotLegalIsRefused) {
  const Outcome wrong =
      weft("schedule tiny model.num_layers=3 model.pipeline_model_parallel_size=2");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "B8")) << wrong.err;
  EXPECT_EQ(weft("schedule tiny --flops 0").code, 2);
  EXPECT_EQ(weft("schedule tiny --gbps -1").code, 2);
}

TEST_F(Schedule, RatesHaveBoundsThatCanBeRead) {
  for (const char* wrong : {"--flops nan",
                            "--flops 0",
                            "--flops -1",
                            "--flops 1e3",
                            "--flops inf",
                            "--gbps nan",
                            "--gbps 1e-20",
                            "--gbps 1e9"}) {
    const Outcome outcome = weft(std::string("schedule tiny ") + wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "is not a number from 1")) << outcome.err;
    EXPECT_LT(outcome.err.size(), 200u) << outcome.err;
  }
  const Json slow = json_of("tiny --flops 1e6 --gbps 1e-6"), fast = json_of("tiny");
  EXPECT_GT(slow["step_ms"].get<double>(), 1000 * fast["step_ms"].get<double>());
}

TEST_F(Schedule, ImprovesAnOrderThatCanThenBeRead) {
  const std::string run = "schedule tiny ep=2 --gbps 1 --json ";
  const Outcome outcome = weft(run + "--improve --tries 60 --write " + path("found"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& found = json["improvement"];
  EXPECT_LT(found["found_ms"], found["given_ms"]);
  EXPECT_GE(found["found_ms"], found["bound_ms"]);
  EXPECT_EQ(found["tried"], 60);
  EXPECT_EQ(json["step_ms"], found["found_ms"]);
  const Outcome text = weft("schedule tiny ep=2 --gbps 1 --improve --tries 60");
  EXPECT_TRUE(contains(text.out, "order: found by --improve, beginning with: plain")) << text.out;
  const Outcome again = weft(run + "--read " + path("found"));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["step_ms"], found["found_ms"]);
  EXPECT_EQ(weft("schedule tiny ep=2 --tries 60").code, 2);  // --tries without --improve
}

TEST_F(Schedule, AStepOfCenturiesIsRefused) {
  const Outcome outcome = weft("schedule mixtral_8x7b --flops 1e6");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the longest that is simulated")) << outcome.err;
}

TEST_F(Schedule, CostsThatAreNoneAreRefusedInPlainWords) {
  base::write_whole(path("costs.json"), "{}");
  const Outcome outcome = weft("schedule tiny --costs " + path("costs.json"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "key 'ranks' not found")) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "json.exception")) << outcome.err;
}

TEST_F(Schedule, APictureOfALongStepIsCutAndSaysSo) {
  const std::string step = "schedule tiny gbs=1600 --svg " + path("a.svg");
  const Outcome cut = weft(step);
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_TRUE(contains(cut.err, "--svg-window FROM TO")) << cut.err;
  EXPECT_LT(fs::file_size(path("a.svg")), 10u << 20);
  EXPECT_TRUE(contains(base::read_text(path("a.svg")), "ms are shown"));
  const Outcome chosen = weft(step + " --svg-window 10 11");
  ASSERT_EQ(chosen.code, 0) << chosen.err;
  EXPECT_FALSE(contains(chosen.err, "--svg-window")) << chosen.err;
  EXPECT_TRUE(contains(base::read_text(path("a.svg")), "of which 10 to 11 ms are shown"));
  EXPECT_EQ(weft(step + " --svg-window 11 10").code, 2);
  const Outcome outside = weft(step + " --svg-window 1e9 2e9");
  EXPECT_EQ(outside.code, 2);
  EXPECT_TRUE(contains(outside.err, "the step is over after")) << outside.err;
}

TEST_F(Schedule, APictureNamesTheStepTimeOnce) {
  ASSERT_EQ(weft("schedule tiny --svg " + path("a.svg")).code, 0);
  const std::string svg = base::read_text(path("a.svg"));
  EXPECT_EQ(svg.find("ms a step"), svg.rfind("ms a step"));
}

// Rows of the first rank's grid, by name.
std::map<std::string, std::string> grid_rows(const std::string& text) {
  std::map<std::string, std::string> rows;
  for (const std::string& line : base::split(text, '\n')) {
    const std::size_t bar = line.find('|');
    if (bar == std::string::npos || line.size() < 20 || line.back() != '|') continue;
    rows.emplace(base::trim(line.substr(9, 8)), line.substr(bar + 1));
  }
  return rows;
}

TEST_F(Schedule, WhatTookTurnsDoesNotLookOverlapped) {
  const auto beside = [](const std::map<std::string, std::string>& rows) {
    int columns = 0;
    for (std::size_t i = 0; i + 1 < rows.at("ep").size(); ++i) {
      columns += rows.at("ep")[i] != '.' && rows.at("compute")[i] != '.' ? 1 : 0;
    }
    return columns;
  };
  const auto plain = grid_rows(weft("schedule tiny --gbps 1").out);
  ASSERT_TRUE(plain.contains("ep"));
  EXPECT_EQ(beside(plain), 0) << plain.at("compute") << "\n" << plain.at("ep");
  EXPECT_NE(plain.at("ep").find('f'), std::string::npos);
  EXPECT_GT(beside(grid_rows(weft("schedule tiny --gbps 1" + kOverlap).out)), 10);
}

TEST_F(Schedule, CoinedWordsHaveALegend) {
  const std::string text = weft("schedule tiny").out;
  for (const char* word : {"hidden_any:",
                           "hidden_gemm:",
                           "exposed:",
                           "no partner (",
                           "short cover",
                           "peer (",
                           "host (",
                           "(that compute was over)"}) {
    EXPECT_TRUE(contains(text, word)) << word << text;
  }
}

}  // namespace schedule_test
}  // namespace weft::cli
