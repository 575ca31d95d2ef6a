// weft perf as a user runs it, on a model that takes no time.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace perf_test {

namespace fs = std::filesystem;
using base::Json;

const std::string kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
const std::string kTiny =
    "perf tiny --max_steps 4 model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 "
    "model.seq_length=16 model.moe_ffn_hidden_size=16 dataset.path=" WEFT_SOURCE_DIR
    "/recipes/corpus.txt ";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Perf : public ::testing::Test {
 protected:
  Perf() : folder_(fs::path(::testing::TempDir()) / base::text("weft_perf_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Perf() override { fs::remove_all(folder_); }

  std::string out(const char* name = "out") const {
    return " --out " + (folder_ / name).string() + " ";
  }
  Json result(const char* name = "out") const {
    return Json::parse(base::read_text(folder_ / name / "result.json"));
  }
  // Result with all step times and peaks multiplied, as an --against option.
  std::string doctored(Json json, double time, double memory) const {
    for (Json& run : json["runs"]) {
      run["step_ms"] = run["step_ms"].get<double>() * time;
      run["spread_ms"] = 0.0;
      run["peak_bytes"] = run["peak_bytes"].get<double>() * memory;
    }
    return against(json.dump());
  }
  std::string against(const std::string& content) const {
    const fs::path file = folder_ / "stored.json";
    base::write_whole(file, content);
    return " --against " + file.string() + " ";
  }

  const fs::path folder_;
};

TEST_F(Perf, VariesOneKnobAndKeepsWhatItMeasured) {
  const Outcome outcome = weft(kTiny + "--json --vary " + kOverlap + "=false,true" + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][0]["value"], "false");
  EXPECT_EQ(json["runs"][0]["speedup"], 1.0);
  EXPECT_EQ(json["contract"]["varies"], Json::array({kOverlap}));
  EXPECT_EQ(json["contract"]["label"], "training-equivalent");
  for (const Json& run : json["runs"]) {
    for (const char* key : {"step_ms", "tokens_per_second", "tflops", "peak_bytes", "final_loss"}) {
      EXPECT_GT(run[key], 0.0) << key;
    }
    for (const char* key : {"spread_ms", "exposed_ms", "hidden_any"}) {
      EXPECT_GE(run[key], 0.0) << key;
    }
    EXPECT_EQ(run["window"], (Json{{"first_step", 1}, {"end_step", 4}}));
    EXPECT_EQ(run["step_times_ms"].size(), 4u);
    EXPECT_EQ(run["config"]["comm_overlap"]["overlap_moe_expert_parallel_comm"],
              run["value"] == "true");
  }
  // Overlap changes no bit of the losses.
  EXPECT_EQ(json["runs"][0]["losses"], json["runs"][1]["losses"]);
  const Json kept = result();
  EXPECT_EQ(kept["state"], "complete");
  EXPECT_EQ(kept["runs"], json["runs"]);
  const std::string page = base::read_text(folder_ / "out" / "result.md");
  for (const char* part :
       {"| value |", "window:", "machine:", "training-equivalent", "hidden_size: 32"}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
}

TEST_F(Perf, MockDataAndAMissingCheckAreBenchmarkOnly) {
  const Outcome outcome = weft(kTiny +
                               "--json --max_steps 1 dataset.kind=mock "
                               "rerun_state_machine.check_for_nan_in_loss=false" +
                               out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json contract = Json::parse(outcome.out)["contract"];
  EXPECT_EQ(contract["label"], "benchmark-only");
  EXPECT_EQ(contract["reasons"].size(), 2u);
}

TEST_F(Perf, ComparesWithAStoredResult) {
  const std::string once = kTiny + "--json ";
  ASSERT_EQ(weft(once + out()).code, 0);
  const Json stored = result();
  // A factor of a thousand, either way; perf_against_test.cpp covers noise.
  const Outcome slower = weft(once + doctored(stored, 1e-3, 1) + out("slower"));
  const Json worse = Json::parse(slower.out)["comparison"];
  EXPECT_GT(worse["runs"][0]["time_ratio"], 1.0);
  EXPECT_EQ(worse["runs"][0]["memory"], "same");
  EXPECT_EQ(worse["runs"][0]["keys"], Json::array());
  EXPECT_EQ(worse["like_with_like"], true);
  EXPECT_EQ(slower.code, worse["verdict"] == "regression" ? 1 : 0) << slower.err;
  const Outcome faster = weft(once + doctored(stored, 1e3, 1) + out("faster"));
  EXPECT_EQ(faster.code, 0) << faster.err;
  EXPECT_LT(Json::parse(faster.out)["comparison"]["runs"][0]["time_ratio"], 1.0);
  const Outcome heavier = weft(once + doctored(stored, 1e3, 0.5) + out("heavier"));
  EXPECT_EQ(heavier.code, 1);
  EXPECT_EQ(Json::parse(heavier.out)["comparison"]["runs"][0]["memory"], "regression");
  const Outcome patient = weft(once + "--timing_threshold 999 --memory_threshold 999" +
                               doctored(stored, 0.1, 0.5) + out("patient"));
  EXPECT_EQ(patient.code, 0) << patient.err;
}

TEST_F(Perf, AComparisonNamesTheKeysMachineAndWindowThatDiffer) {
  ASSERT_EQ(weft(kTiny + out()).code, 0);
  Json stored = result();
  stored["machine"]["cpu"] = "an abacus";
  const Outcome outcome =
      weft(kTiny + "rng.seed=7 --eval_time_start_step 2" + doctored(stored, 1e3, 1) + out("other"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "differs: rng.seed: 1234 -> 7")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "abacus")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "[1, 4) were timed, and now [2, 4)")) << outcome.out;
}

TEST_F(Perf, WhatIsNotLikeWithLikeGetsNoVerdict) {
  ASSERT_EQ(weft(kTiny + out()).code, 0);
  // A thousand times slower with another seed or machine: the cause is unknown.
  const Json stored = result();
  const Outcome key = weft(kTiny + "--json rng.seed=7" + doctored(stored, 1e-3, 1e-3) + out("key"));
  EXPECT_EQ(key.code, 0) << key.err;
  const Json comparison = Json::parse(key.out)["comparison"];
  EXPECT_EQ(comparison["verdict"], "no verdict");
  EXPECT_EQ(comparison["like_with_like"], false);
  EXPECT_EQ(comparison["runs"][0]["time"], "no verdict");
  Json abacus = stored;
  abacus["machine"]["cpu"] = "an abacus";
  const Outcome machine = weft(kTiny + doctored(abacus, 1e-3, 1) + out("machine"));
  EXPECT_EQ(machine.code, 0) << machine.err;
  EXPECT_TRUE(has(machine.out, "not like with like: no verdict")) << machine.out;
  EXPECT_FALSE(has(machine.out, "REGRESSION")) << machine.out;
}

TEST_F(Perf, ADifferenceThatTheSpreadExplainsIsNoise) {
  ASSERT_EQ(weft(kTiny + out()).code, 0);
  Json stored = result();
  for (Json& run : stored["runs"]) {
    run["step_ms"] = run["step_ms"].get<double>() / 1000;
    run["spread_ms"] = 1e9;
  }
  const Outcome outcome = weft(kTiny + "--json" + against(stored.dump()) + out("noisy"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json comparison = Json::parse(outcome.out)["comparison"];
  EXPECT_EQ(comparison["runs"][0]["time"], "within the noise");
  EXPECT_EQ(comparison["verdict"], "no regression");
  // Three steps each: three standard errors of the difference.
  EXPECT_GT(comparison["runs"][0]["noise_ms"], 1.7e9);
  EXPECT_LT(comparison["runs"][0]["noise_ms"], 1.8e9);
}

TEST_F(Perf, AFolderWithResultsIsNotWrittenOver) {
  ASSERT_EQ(weft(kTiny + "--max_steps 1" + out()).code, 0);
  const std::string before = base::read_text(folder_ / "out" / "result.json");
  const Outcome again = weft(kTiny + out());
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "has a result.json of an earlier run: give another")) << again.err;
  const Outcome own =
      weft(kTiny + "--against " + (folder_ / "out" / "result.json").string() + out());
  EXPECT_EQ(own.code, 2);
  EXPECT_TRUE(has(own.err, "the file to compare with: give another folder")) << own.err;
  const Outcome beside = weft(kTiny + against(before) + " --out " + folder_.string());
  EXPECT_EQ(beside.code, 2);
  EXPECT_EQ(base::read_text(folder_ / "out" / "result.json"), before);
}

TEST_F(Perf, AnImpossibleFolderIsRefusedBeforeAnythingElseIsSaid) {
  for (const char* folder : {"/proc/foo", "/etc/passwd", "/etc/passwd/deeper"}) {
    const Outcome outcome = weft(kTiny + "--out " + folder);
    const bool is_below_a_file = std::string_view(folder).starts_with("/etc");
    EXPECT_EQ(outcome.code, is_below_a_file ? 2 : 1) << folder;
    EXPECT_TRUE(outcome.err.starts_with(is_below_a_file ? "error: --out: '" : "error: --out '"))
        << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

TEST_F(Perf, OverlapLinesGiveTheReasonsThatCheckGives) {
  const Outcome outcome = weft(kTiny + "--verbose --max_steps 1" + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "pipeline exchange: off (C12: ")) << outcome.err;
}

TEST_F(Perf, MoreRanksThanCoresAreSaid) {
  const Outcome crowd = weft(kTiny + "--json --max_steps 1" + out("crowd"), "taskset -c 0");
  ASSERT_EQ(crowd.code, 0) << crowd.err;
  EXPECT_TRUE(has(crowd.err, "warning: 2 ranks share 1 core: ")) << crowd.err;
  EXPECT_TRUE(has(Json::parse(crowd.out)["contract"]["crowding"], "who gets a core"));
  const Outcome alone = weft(
      kTiny + "--json --max_steps 1 world=1 model.expert_model_parallel_size=1" + out("alone"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(Json::parse(alone.out)["contract"]["crowding"], "");
}

TEST_F(Perf, HelpNamesTheFlagsThatMeasure) {
  const std::string help = weft("perf --help").out;
  for (const char* flag : {"-d, --dryrun",
                           "--max_steps",
                           "--eval_time_start_step",
                           "--eval_time_end_step",
                           "--skip_first_percent_time",
                           "--timing_threshold",
                           "--memory_threshold"}) {
    EXPECT_TRUE(has(help, flag)) << flag;
  }
}

TEST_F(Perf, StoredFilesThatAreNoResultsAreRefusedBeforeAnythingRuns) {
  ASSERT_EQ(weft(kTiny + "--max_steps 1" + out()).code, 0);
  const Json good = result();
  Json format = good, time = good, runs = good, value = good, keys = good;
  format["format"] = "else";
  time["runs"][0]["step_ms"] = -1;
  runs["runs"] = 3;
  value["runs"][0]["value"] = "other";
  keys["runs"][0]["config"] = "no";
  for (const std::string& content : {std::string(),
                                     std::string("{"),
                                     std::string("[1]"),
                                     std::string("{}"),
                                     std::string("{\"format\":1}"),
                                     format.dump(),
                                     time.dump(),
                                     runs.dump(),
                                     value.dump(),
                                     keys.dump()}) {
    const Outcome outcome = weft(kTiny + against(content) + out("never"));
    EXPECT_EQ(outcome.code, 2) << content.substr(0, 80);
    EXPECT_FALSE(outcome.err.empty());
  }
  EXPECT_EQ(weft(kTiny + "--against /nonexistent.json" + out("never")).code, 2);
  const Outcome cut = weft(kTiny + against("{\"format\":") + out("never"));
  EXPECT_NE(cut.err.find("give the result.json of an earlier weft perf"), std::string::npos)
      << cut.err;
  EXPECT_FALSE(fs::exists(folder_ / "never"));
}

TEST_F(Perf, TheFlagsAreListedAsJsonToo) {
  const Json flags = Json::parse(weft("perf --flags --json").out).at("flags");
  const auto is_of_tensors = [](const Json& flag) { return flag.at("brief") == "-tp"; };
  const auto found = std::ranges::find_if(flags, is_of_tensors);
  ASSERT_NE(found, flags.end());
  EXPECT_EQ(found->at("name"), "--tensor_model_parallel_size");
}

TEST_F(Perf, EveryRefusedValueIsNamedBeforeAnythingRuns) {
  const Outcome outcome = weft(kTiny + "--vary model.num_attention_heads=2,3,5" + out("never"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "num_attention_heads=3")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "num_attention_heads=5")) << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "never"));
}

TEST_F(Perf, TwoKnobsNeedAGridAndTheTableSaysWhatThatMeans) {
  const std::string two = kTiny + "--vary " + kOverlap + "=false,true --vary rng.seed=1,2 ";
  const Outcome refused = weft(two + out("never"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "--grid")) << refused.err;
  const Outcome grid = weft(two + "--grid --max_steps 1" + out());
  EXPECT_EQ(grid.code, 0) << grid.err;
  EXPECT_TRUE(has(grid.out, "not to be credited to one")) << grid.out;
  EXPECT_EQ(result()["runs"].size(), 4u);
}

TEST_F(Perf, ADryRunPrintsTheConfigAndRunsNothing) {
  const Outcome outcome =
      weft(kTiny + "--dryrun --vary " + kOverlap + "=false,true" + out("never"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "# would run false")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "# would run true")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "  hidden_size: 32\n")) << outcome.out;
  EXPECT_FALSE(fs::exists(folder_ / "never"));
}

TEST_F(Perf, ADryRunSaysWhatTheRulesSayOfTheRun) {
  const std::string words = kTiny + "--dryrun ddp.check_for_nan_in_grad=true " + out("never");
  const Outcome plain = weft(words);
  EXPECT_TRUE(has(plain.err, "warning: W22")) << plain.err;
  EXPECT_FALSE(has(plain.err, "set: ")) << plain.err;
  EXPECT_FALSE(has(plain.err, "off by default")) << plain.err;
  const Outcome outcome = weft(words + " --verbose");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "warning: W22")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "set: model.expert_tensor_parallel_size = 1 (B3")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "overlap (")) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "W22")) << outcome.out;
}

TEST_F(Perf, ARunForGpusRunsAsATwinAndSaysSo) {
  const std::string gpu = kTiny + "hardware.gpu=h100 model.params_dtype=bf16 model.bf16=true ";
  const Outcome outcome = weft(gpu + "--json --max_steps 2" + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "twin runs instead of the model")) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["contract"]["label"], "benchmark-only");
  EXPECT_EQ(json["contract"]["twin"], true);
  std::set<std::string> changed;
  for (const Json& change : json["runs"][0]["changes"]) {
    changed.insert(change["key"]);
    EXPECT_FALSE(change["why"].get<std::string>().empty());
  }
  EXPECT_TRUE(changed.contains("hardware.gpu"));
  EXPECT_TRUE(changed.contains("dataset.kind"));
  // A key that the twin lacks compares equal runs.
  const Outcome nothing = weft(gpu + "--vary model.vocab_size=4096,8192" + out("never"));
  EXPECT_EQ(nothing.code, 2);
  EXPECT_TRUE(has(nothing.err, "runs exactly what 4096 runs")) << nothing.err;
  EXPECT_TRUE(has(nothing.err, "the twin fixes model.vocab_size = ")) << nothing.err;
  EXPECT_TRUE(has(nothing.err, "--vary cannot show it")) << nothing.err;
}

TEST_F(Perf, OneValueInTwoSpellingsIsOneValue) {
  const Outcome outcome = weft(kTiny + "--vary " + kOverlap + "=true,false,True" + out("never"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "=True: is the same value as true: leave one out")) << outcome.err;
}

TEST_F(Perf, WhatIsNotBuiltIsRefusedUnlessATwinIsAskedFor) {
  const std::string mtp = kTiny + "model.mtp_num_layers=1 --max_steps 1 ";
  const Outcome refused = weft(mtp + out("never"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "multi-token prediction")) << refused.err;
  EXPECT_TRUE(has(refused.err, "--twin")) << refused.err;
  const Outcome twin = weft(mtp + "--twin" + out());
  EXPECT_EQ(twin.code, 0) << twin.err;
}

TEST_F(Perf, AnInterruptKeepsWhatWasMeasuredAndMarksIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command =
        base::text("exec '{}' {} --max_steps 100000 --vary rng.seed=1,2 {} > /dev/null 2>&1",
                   WEFT_BINARY,
                   kTiny,
                   out());
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  const fs::path metrics = folder_ / "out" / "run1" / "metrics.jsonl";
  for (int i = 0; i < 2400 && (!fs::exists(metrics) || fs::file_size(metrics) == 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Json kept = result();
  EXPECT_EQ(kept["interrupted"], true);
  EXPECT_EQ(kept["state"], "interrupted");
  ASSERT_EQ(kept["runs"].size(), 1u);
  EXPECT_EQ(kept["runs"][0]["interrupted"], true);
  EXPECT_TRUE(kept["runs"][0]["step_ms"].is_null());  // before the measuring window
  EXPECT_FALSE(kept["runs"][0]["step_times_ms"].empty());
}

TEST_F(Perf, TheSavedConfigIsTheOneThatRuns) {
  const std::string file = (folder_ / "saved.yaml").string();
  const std::string gpu = kTiny + "hardware.gpu=h100 model.params_dtype=bf16 model.bf16=true ";
  const Outcome outcome = weft(gpu + "--max_steps 2 --save_config_filepath " + file + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome saved = weft("check --json " + file);
  const Json config = Json::parse(saved.out)["config"];
  EXPECT_EQ(config["train"]["train_iters"], 4) << "two timed and two traced";
  EXPECT_EQ(config["runtime"]["trace"], true);
  EXPECT_NE(config["hardware"]["gpu"], "h100") << "the twin runs on CPUs";
  const Outcome dry = weft(gpu + "--max_steps 2 --dryrun");
  EXPECT_TRUE(has(dry.out, base::read_text(file))) << dry.out;
}

}  // namespace perf_test
}  // namespace weft::cli
