// weft plan MODEL: a layout search as a user asks for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace plan_search_test {

using Json = base::Json;
namespace fs = std::filesystem;

// Fixed sizes keep the search short.
const std::string kAsk =
    "plan qwen3-30b-a3b --gpus=16 --gpu=h100 --gbs=512 --seq=4096 tp=1 cp=1 mbs=1 ";

// One shape, for tests that do not depend on it.
const std::string kOneShape = kAsk + "pp=2 ep=8 ";

Json searched(const std::string& words) {
  const Outcome outcome = weft(words + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

// Result shared by several tests.
const Json& ranked_five() {
  static const Json json = searched(kAsk + "--top=5");
  return json;
}

TEST(PlanSearch, RanksLayoutsWithWhatTheContractNames) {
  const Json& json = ranked_five();
  ASSERT_EQ(json["layouts"].size(), 5u);
  double before = 0;
  for (const Json& layout : json["layouts"]) {
    EXPECT_GE(layout["step_ms"].get<double>(), 0.99 * before);  // ties: the simpler one first
    before = layout["step_ms"].get<double>();
    EXPECT_EQ(layout["keys"]["model.tensor_model_parallel_size"], 1);
    EXPECT_EQ(layout["keys"]["train.global_batch_size"], 512);
    const double tokens = 512.0 * 4096 / before * 1e3 / 16;
    EXPECT_NEAR(layout["tokens_per_second_per_gpu"].get<double>(), tokens, tokens * 1e-6);
    EXPECT_LE(layout["memory_bytes"].get<double>(), 84.9e9);
    EXPECT_GT(layout["mfu"].get<double>(), 0.05);
    EXPECT_LT(layout["mfu"].get<double>(), 0.9);
    EXPECT_TRUE(layout["bubble"].is_number());
    EXPECT_TRUE(layout["tflops_per_gpu"].is_number());
    EXPECT_TRUE(layout["wall"].is_string());
    for (const char* kind : {"ep", "dp", "tp", "pp", "cp"}) {
      EXPECT_TRUE(layout["exposed"][kind].is_number());
    }
  }
  EXPECT_FALSE(json["discarded"].empty());
  for (const Json& heap : json["discarded"]) {
    EXPECT_TRUE(heap["keys"].is_object());
    EXPECT_FALSE(heap["why"].get<std::string>().empty());
  }
  EXPECT_GE(json["sensitivity"].size(), 10u);
  EXPECT_FALSE(json["pareto"].empty());
  EXPECT_EQ(json["verdicts"].size(), 4u);
}

TEST(PlanSearch, TheTextHasTheLayoutsTheVerdictsAndTheDiscards) {
  const Outcome outcome = weft(kOneShape + "--top=2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"tokens/s/GPU",
                           "Does expert-parallel overlap pay here?",
                           "One step in",
                           "Time against memory",
                           "Your recipe (qwen3_30b_a3b): tp ",
                           "9 of 10 within",
                           "The best safe layout",
                           "GB/s each way between machines",
                           "--explain=2",
                           "Discarded",
                           "optimizer states"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
  EXPECT_EQ(weft(kOneShape + "--top=2 --fresh").out, outcome.out)
      << "the same question, another answer";
}

// The recipe's layout is priced as by --simulate, and shown beside the best.
TEST(PlanSearch, TheRecipesOwnLayoutIsTold) {
  const Json& json = ranked_five();
  const Json& own = json["own"];
  ASSERT_TRUE(own["legal"].get<bool>()) << own;
  const Json run = searched(
      "plan --simulate qwen3_30b_a3b --gpu=h100 hardware.gpu=h100 world=16 gbs=512 "
      "model.seq_length=4096 dataset.seq_length=4096 tp=1 cp=1 mbs=1");
  EXPECT_NEAR(own["step_ms"].get<double>() / run["step_ms"].get<double>(), 1, 1e-9);
  if (own["fits"].get<bool>()) {
    EXPECT_NEAR(own["best_times_as_fast"].get<double>(),
                own["step_ms"].get<double>() / json["layouts"][0]["step_ms"].get<double>(),
                1e-9);
  }
}

TEST(PlanSearch, ASafePlanHasNothingOnTheHostNoGraphsAndMemoryToSpare) {
  const Json json = searched(kOneShape + "--safe --top=3");
  for (const Json& layout : json["layouts"]) {
    EXPECT_LE(layout["memory_bytes"].get<double>(), 0.92 * 84.9e9);
    EXPECT_EQ(layout["keys"].value("model.cuda_graph_impl", "none"), "none");
    EXPECT_EQ(layout["memory_parts_bytes"]["host"].get<double>(), 0);
  }
}

TEST(PlanSearch, ItsRecipeIsOneThatCheckAccepts) {
  const fs::path file = fs::temp_directory_path() / base::text("weft_plan_{}.yaml", getpid());
  const Json json = searched(kAsk + "pp=2 ep=8 --write=" + file.string());
  const Outcome check = weft("check " + file.string() + " --json");
  fs::remove(file);
  EXPECT_EQ(check.code, 0) << check.out;
  const Json judged = Json::parse(check.out);
  EXPECT_TRUE(judged["legal"].get<bool>());
  EXPECT_EQ(judged["config"]["runtime"]["world_size"], 16);
  EXPECT_EQ(judged["config"]["model"]["expert_model_parallel_size"],
            json["layouts"][0]["keys"]["model.expert_model_parallel_size"]);
}

TEST(PlanSearch, ALayoutThatFitsOnlyWithTheHostIsFoundAndItsRecipeAccepted) {
  if (!soaks()) GTEST_SKIP() << "skipped: Offloading.FindsWhatFitsOnlyWithTheHost searches so";
  const fs::path file = fs::temp_directory_path() / base::text("weft_host_{}.yaml", getpid());
  const Json json =
      searched("plan qwen3_30b_a3b --gpus=4 --gpu=h100 --gbs=64 --seq=4096 --top=1 --write=" +
               file.string());
  const Outcome check = weft("check " + file.string() + " --json");
  fs::remove(file);
  EXPECT_EQ(json["fitting"], 0);
  EXPECT_GT(json["offloading"], 0);
  const Json& best = json["layouts"][0];
  EXPECT_TRUE(best["keys"]["optimizer.optimizer_cpu_offload"].get<bool>());
  EXPECT_GT(best["memory_parts_bytes"]["host"].get<double>(), 50e9);
  EXPECT_GT(best["exposed"]["update"].get<double>(), 0);
  ASSERT_EQ(check.code, 0) << check.out;
  const Json judged = Json::parse(check.out);
  EXPECT_TRUE(judged["legal"].get<bool>());
  EXPECT_EQ(judged["config"]["optimizer"]["optimizer_offload_fraction"],
            best["keys"]["optimizer.optimizer_offload_fraction"]);
}

TEST(PlanSearch, ItsOverridesAreWordsOfARun) {
  const Outcome overrides = weft(kOneShape + "--overrides");
  ASSERT_EQ(overrides.code, 0) << overrides.err;
  const Outcome check = weft("check qwen3_30b_a3b --json hardware.gpu=h100 world=16 " +
                             overrides.out.substr(0, overrides.out.size() - 1));
  EXPECT_EQ(check.code, 0) << check.out << overrides.out;
}

// The recipe's own layout distributes stages differently, and has a smaller optimizer.
TEST(PlanSearch, ItsOverridesOverruleTheLayoutOfTheRecipe) {
  const std::string ask =
      "qwen3_235b_a22b --gpus=128 --gpu=h100 --gbs=256 tp=1 cp=1 pp=8 ep=16 mbs=1 ";
  const Outcome overrides = weft("plan " + ask + "--overrides");
  ASSERT_EQ(overrides.code, 0) << overrides.err;
  EXPECT_NE(overrides.err.find("hardware.cuda_device_max_connections="), std::string::npos);
  const Outcome check = weft("check qwen3_235b_a22b --json hardware.gpu=h100 world=128 " +
                             overrides.out.substr(0, overrides.out.size() - 1));
  const Json judged = Json::parse(check.out);
  EXPECT_TRUE(judged["legal"].get<bool>()) << check.out;
  EXPECT_FALSE(judged["config"]["model"]["account_for_loss_in_pipeline_split"].get<bool>());
}

TEST(PlanSearch, TheOptimizerIsThatOfTheRecipe) {
  const Json& json = ranked_five();
  const Outcome run = weft("check qwen3_30b_a3b --json");
  const Json config = Json::parse(run.out)["config"];
  EXPECT_TRUE(config["optimizer"]["use_precision_aware_optimizer"].get<bool>());
  EXPECT_TRUE(json["layouts"][0]["keys"]["optimizer.use_precision_aware_optimizer"].get<bool>());
}

TEST(PlanSearch, ExplainsAPlaceOrTheBestWithKeys) {
  const Json second = searched(kAsk + "--explain=2");
  EXPECT_EQ(second["explained"]["keys"], ranked_five()["layouts"][1]["keys"]);
  const Json keys = searched(kAsk + "pp=2 --explain='ep=8 mbs=1'");
  EXPECT_EQ(keys["explained"]["keys"]["model.pipeline_model_parallel_size"], 2);
  EXPECT_EQ(keys["explained"]["keys"]["model.expert_model_parallel_size"], 8);
  EXPECT_NE(weft(kOneShape + "--explain=1").out.find("As overrides"), std::string::npos);
  EXPECT_EQ(weft(kAsk + "--explain=0").code, 2);
  EXPECT_EQ(weft(kAsk + "--explain=1001").code, 2);
}

TEST(PlanSearch, KnowsModelsByTheNamesOfTables) {
  for (const char* name : third_or_all<const char*>({"DeepSeek-V3",
                                                     "Qwen3_30B_a3B",
                                                     "qwen3-235b",
                                                     "llama3.1-405b",
                                                     "gpt-oss-120b",
                                                     "kimi-k2",
                                                     "mixtral-8x7b",
                                                     "qwen3-30b"})) {
    const Outcome outcome = weft(base::text("plan {} --gpus=7 --gpu=h100 pp=5 --json", name));
    EXPECT_EQ(outcome.code, 1) << name << outcome.err;  // 7 GPUs cannot form a pipeline of 5
    EXPECT_TRUE(Json::parse(outcome.out)["layouts"].empty());
  }
  const Outcome unknown = weft("plan gpt5 --gpus=8 --gpu=h100");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("deepseek_v3"), std::string::npos);
  const Outcome gpu = weft("plan deepseek_v3 --gpus=8 --gpu=h1000");
  EXPECT_EQ(gpu.code, 2);
  EXPECT_NE(gpu.err.find("gb200"), std::string::npos);
}

TEST(PlanSearch, AModelThatFitsNowhereSaysByHowMuchAndWhatHelps) {
  const Outcome outcome = weft("plan deepseek_v3 --gpus=8 --gpu=h100 --gbs=64 tp=1 cp=1 ep=8");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("GiB more than there is"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("What would make it fit"), std::string::npos) << outcome.out;
}

TEST(PlanSearch, AHuggingFaceFolderIsAModel) {
  const Outcome outcome = weft(
      "plan " WEFT_SOURCE_DIR "/tests/golden/qwen3_moe_tiny --gpus=2 --gpu=H100 --gbs=8 tp=1 cp=1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(PlanSearch, WrongQuestionsAreRefused) {
  for (const char* words : {"plan",
                            "plan deepseek_v3",
                            "plan deepseek_v3 --gpus=0 --gpu=h100",
                            "plan deepseek_v3 --gpus=1000001 --gpu=h100",
                            "plan tiny --gpus=8",
                            "plan tiny --gpus=8 --gpu=h100 --seq=0",
                            "plan tiny --gpus=8 --gpu=h100 --precision=mxfp8",
                            "plan tiny --gpus=8 --gpu=h100 world=4",
                            "plan tiny --gpus=8 --gpu=h100 model.nosuch=4",
                            "plan tiny --gpus=8 --gpu=h100 --top=0",
                            "plan nosuch.json --gpus=8 --gpu=h100",
                            "plan tiny --gpus=8 --gpu=h100 --simulate"}) {
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 2) << words << outcome.err;
    EXPECT_FALSE(outcome.err.empty()) << words;
  }
}

}  // namespace plan_search_test
}  // namespace weft::cli
