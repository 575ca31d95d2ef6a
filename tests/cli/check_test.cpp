#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program_support.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/cli/judge/check_report.h"

namespace weft::cli {
namespace check_test {

using base::Json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool has_id(const Json& findings, const std::string& id) {
  for (const Json& finding : findings) {
    if (finding["id"] == id) return true;
  }
  return false;
}

Json check(const std::string& words, int code) {
  const Outcome outcome = weft("check --json " + words);
  EXPECT_EQ(outcome.code, code) << words << "\n" << outcome.err;
  return Json::parse(outcome.out);
}

TEST(CheckCommand, JsonHasEveryKeyOfTheContract) {
  const Json json = check("tiny", 0);
  for (const char* key :
       {"legal", "runs", "missing", "errors", "warnings", "auto", "advice", "config", "derived"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["legal"], true);
  EXPECT_EQ(json["runs"], true);
  EXPECT_TRUE(has_id(json["auto"], "B3"));
  EXPECT_EQ(json["config"]["model"]["expert_tensor_parallel_size"], 1);
  EXPECT_EQ(json["derived"]["dp"], 2);
}

TEST(CheckCommand, WithoutARecipeItStartsFromTheDefaults) {
  const Json json = check("", 0);
  EXPECT_EQ(json["config"]["model"]["num_layers"], 2);
  EXPECT_EQ(json["runs"], true);
}

TEST(CheckCommand, TakesALineOfTheHarnessAsItIsPasted) {
  const Json json = check(
      "uv run python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task pretrain "
      "-ng 16 -g h100 -c bf16 cfg.train.train_iters = 20",
      0);
  EXPECT_EQ(json["recipe"], "qwen3_30b_a3b_pretrain_16gpu_h100_bf16");
  EXPECT_EQ(json["config"]["train"]["train_iters"], 20);
}

TEST(CheckCommand, ErrorsComeAllAtOnceAndExitWithTwo) {
  const Json json = check(
      "model.num_layers=3 model.pipeline_model_parallel_size=2 optimizer.min_lr=1 "
      "comm_overlap.delay_wgrad_compute=true",
      2);
  EXPECT_EQ(json["legal"], false);
  EXPECT_EQ(json["runs"], false);
  for (const char* id : {"B8", "W11", "C28"}) EXPECT_TRUE(has_id(json["errors"], id)) << id;
  for (const Json& error : json["errors"]) {
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_FALSE(error["fix"].get<std::string>().empty());
  }
}

TEST(CheckCommand, WhatCannotBeReadIsAnErrorOfTheReport) {
  const Json json = check("model.num_layer=3", 2);
  EXPECT_EQ(json["legal"], false);
  EXPECT_TRUE(contains(json["errors"][0]["message"], "did you mean 'model.num_layers'?"));
  const Outcome text = weft("check model.num_layer=3");
  EXPECT_EQ(text.code, 2);
  EXPECT_TRUE(contains(text.out, "not legal, 1 error")) << text.out;
  const Outcome none = weft("check nosuchrecipe");
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.out, "could not parse the arguments: 1 error")) << none.out;
}

// As in train, the start folder decides the model.
TEST(CheckCommand, TheModelIsThatOfTheFolderTheRunStartsFrom) {
  const std::string start = "tiny dataset.kind=mock checkpoint.pretrained_checkpoint=";
  const std::string folder = WEFT_SOURCE_DIR "/tests/golden/deepseek_v3_tiny ";
  EXPECT_EQ(check(start + folder, 0)["config"]["model"]["num_moe_experts"], 16);
  EXPECT_TRUE(has_id(check(start + folder + "world=2 pp=2 ep=1", 2)["errors"], "B8"));
  EXPECT_EQ(weft("check " + start + "no_such_folder").code, 2);
  EXPECT_EQ(weft("schedule " + start + folder + "world=2 pp=2 ep=1").code, 2);
}

TEST(CheckCommand, LegalAndRunsAreTwoVerdicts) {
  const Json json = check("model.tensor_model_parallel_size=2", 0);
  EXPECT_EQ(json["legal"], true);
  EXPECT_EQ(json["runs"], false);
  EXPECT_EQ(json["missing"][0]["part"], "tensor parallelism without sequence parallelism");
  const Outcome train = weft("train tiny model.tensor_model_parallel_size=2");
  EXPECT_EQ(train.code, 2);
  EXPECT_TRUE(contains(train.err, "not built yet: tensor parallelism")) << train.err;
}

TEST(CheckCommand, ALargeWorldIsCheckedWithoutRanks) {
  const Json json = check(
      "model.num_layers=64 model.num_moe_experts=64 model.expert_model_parallel_size=64 "
      "model.pipeline_model_parallel_size=16 model.virtual_pipeline_model_parallel_size=2 "
      "train.global_batch_size=1024 --world-size 1024 --fake-init-process-group --schedule",
      0);
  EXPECT_EQ(json["derived"]["grid"]["world"], 1024);
  EXPECT_EQ(json["derived"]["dp"], 64);
  EXPECT_EQ(json["schedule"]["valid"], true);
  EXPECT_EQ(json["schedule"]["pipeline_ranks"].size(), 16);
  EXPECT_EQ(json["schedule"]["micro_batches"], 16);
  EXPECT_EQ(json["schedule"]["micro_batches_verified"], 16);
}

TEST(CheckCommand, AVeryLongStepIsVerifiedInItsShape) {
  const Json json = check(
      "model.num_layers=32 model.num_moe_experts=8 model.expert_model_parallel_size=8 "
      "model.pipeline_model_parallel_size=4 model.virtual_pipeline_model_parallel_size=2 "
      "train.global_batch_size=8192 --schedule",
      0);
  EXPECT_EQ(json["schedule"]["valid"], true);
  EXPECT_EQ(json["schedule"]["micro_batches"], 1024);
  EXPECT_LT(json["schedule"]["micro_batches_verified"], 1024);
  EXPECT_GE(json["schedule"]["micro_batches_verified"], 24);
}

// Megabytes of weights, and terabytes of activations.
TEST(CheckCommand, ActivationsThatNoMachineHoldsAreMissingRoom) {
  const std::string words =
      "tiny world=1 ep=1 dataset.kind=mock train.eval_interval=0 mbs=1048576 gbs=1048576";
  const Json json = check(words, 0);
  EXPECT_EQ(json["runs"], false);
  EXPECT_TRUE(json["missing"].empty()) << json["missing"];
  ASSERT_EQ(json["limits"].size(), 1u) << json["limits"];
  EXPECT_TRUE(contains(json["limits"][0]["message"], "activations")) << json["limits"];
  const Outcome train = weft("train " + words);
  EXPECT_EQ(train.code, 2);
  EXPECT_TRUE(contains(train.err, "this machine has")) << train.err;
  EXPECT_EQ(check("tiny", 0)["runs"], true);
}

TEST(CheckCommand, MemoryIsPredictedOfWhatNoMachineHolds) {
  const Json json = check(
      "tiny world=64 ep=8 pp=4 vpp=1 dataset.kind=mock train.eval_interval=0 "
      "model.num_layers=16 model.hidden_size=8192 model.num_moe_experts=64 gbs=1024 "
      "model.moe_ffn_hidden_size=4096 model.seq_length=4096 hardware.gpu=h100 "
      "runtime.device=cuda model.bf16=true --memory",
      1);
  const Json& memory = json["memory"];
  ASSERT_EQ(memory["pipeline_ranks"].size(), 4u) << json["missing"];
  EXPECT_LT(memory["micro_batches_run"], memory["micro_batches"]);
  EXPECT_GT(memory["pipeline_ranks"][0]["peak_total_bytes"], 84.9e9);
  EXPECT_TRUE(json["missing"].empty()) << json["missing"];
  EXPECT_EQ(json["runs"], false);
  const Json& limit = json["limits"].at(0);
  EXPECT_EQ(limit["part"], "room on the GPU");
  EXPECT_TRUE(contains(limit["message"], "more than the")) << limit;
  EXPECT_TRUE(contains(limit["message"], "activations")) << limit;
}

// Row counts longer than the messages that a dry step copies.
TEST(CheckCommand, MemoryIsPredictedOfVeryManyExperts) {
  const Json json =
      check("tiny world=1 ep=1 model.num_moe_experts=8256 model.hidden_size=16 --memory", 0);
  EXPECT_GT(json["memory"]["pipeline_ranks"].at(0)["peak_total_bytes"], 3e9);
}

// Also without --memory, and under its own heading.
TEST(CheckCommand, ARunThatDoesNotFitItsGpuIsToldSo) {
  const std::string words =
      "tiny world=8 ep=8 vpp=1 dataset.kind=mock train.eval_interval=0 model.num_layers=8 "
      "model.hidden_size=4096 model.num_moe_experts=64 gbs=32 mbs=4 "
      "model.moe_ffn_hidden_size=4096 model.seq_length=4096 runtime.device=cuda model.bf16=true "
      "hardware.gpu=";
  const Outcome text = weft("check " + words + "h100");
  EXPECT_EQ(text.code, 1) << text.err;
  EXPECT_TRUE(contains(text.out, "legal, runs in this build, does not fit")) << text.out;
  EXPECT_TRUE(contains(text.out, "\ndoes not fit\n  rank 0 needs")) << text.out;
  EXPECT_FALSE(contains(text.out, "missing in this build")) << text.out;
  EXPECT_TRUE(contains(text.out, " frees ")) << text.out;
  const Outcome roomy = weft("check " + words + "b300");
  EXPECT_EQ(roomy.code, 0) << roomy.out;
  EXPECT_FALSE(contains(roomy.out, "does not fit")) << roomy.out;
  EXPECT_TRUE(contains(roomy.out, "legal, runs in this build, fits NVIDIA B300\n")) << roomy.out;
  EXPECT_EQ(check(words + "b300", 0)["fits"], true);
  EXPECT_EQ(check(words + "h100", 1)["fits"], false);
  EXPECT_EQ(check("tiny", 0)["fits"], nullptr);
  EXPECT_TRUE(contains(weft("check " + words + "b300 model.mtp_num_layers=1").out,
                       "fits NVIDIA B300 without what is missing\n"));
  const Outcome host = weft("check " + words +
                            "b300 optimizer.optimizer_cpu_offload=true "
                            "optimizer.optimizer_offload_fraction=1 hardware.host_memory_gb=100");
  EXPECT_EQ(host.code, 1) << host.out;
  EXPECT_TRUE(contains(host.out, "optimizer.optimizer_offload_fraction=0.")) << host.out;
}

// Runs far below the limit, counted runs, and runs without known planner numbers.
TEST(CheckCommand, EndsAsMemoryDoes) {
  const std::string run =
      " tiny vpp=1 dataset.kind=mock train.eval_interval=0 model.num_layers=3 mbs=4 gbs=8 "
      "model.hidden_size=4096 model.num_moe_experts=64 model.moe_ffn_hidden_size=4096 "
      "model.seq_length=4096 runtime.device=cuda model.bf16=true hardware.gpu=";
  for (const auto& [gpu, code] : {std::pair("h100", 1), {"a100", 1}, {"h200", 0}, {"b300", 0}}) {
    EXPECT_EQ(weft("check" + run + gpu).code, code) << gpu;
    EXPECT_EQ(weft("memory" + run + gpu).code, code) << gpu;
  }
}

TEST(CheckCommand, ExplainsARule) {
  const Outcome story = weft("check --explain B3");
  EXPECT_EQ(story.code, 0);
  EXPECT_TRUE(contains(story.out, "expert_tensor_parallel_size"));
  EXPECT_EQ(weft("check --explain nosuch").code, 2);
  for (const char* more : {"tiny --explain B3", "--explain B3 --memory", "--markdown --schedule"}) {
    const Outcome refused = weft(std::string("check ") + more);
    EXPECT_EQ(refused.code, 2) << more;
    EXPECT_TRUE(contains(refused.err, "looks at no run")) << refused.err;
  }
}

TEST(CheckCommand, AChangedWordIsTheOneThatHolds) {
  const Outcome outcome = weft("check tiny model.sequence_parallel=false --sequence-parallel");
  EXPECT_TRUE(
      contains(outcome.out, "--sequence-parallel true was asked for, and B2 makes it false"))
      << outcome.out;
}

TEST(CheckCommand, TextSaysWhatWasDecided) {
  const std::string words = "check tiny comm_overlap.overlap_moe_expert_parallel_comm=true";
  const Outcome text = weft(words + " --verbose");
  EXPECT_EQ(text.code, 0);
  for (const char* part :
       {"legal, runs", "set automatically", "B3", "expert-parallel overlap: on"}) {
    EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
  }
  // Verdict, advice and the run come first; the rest is named, and shown on request.
  EXPECT_LT(text.out.find("\nthe run\n"), text.out.find("\nset automatically\n"));
  const Outcome plain = weft(words);
  EXPECT_FALSE(contains(plain.out, "set automatically\n")) << plain.out;
  EXPECT_FALSE(contains(plain.out, "\noverlap\n")) << plain.out;
  EXPECT_TRUE(contains(plain.out, "--verbose lists ")) << plain.out;
}

// C33 sets one key in several sections: a single line.
TEST(CheckCommand, AKeyThatIsSetAutomaticallyIsNamedOnce) {
  CheckReport report;
  const auto add = [&](const std::string& key, const base::Json& from) {
    report.verdict.automatic.push_back({.id = "C33",
                                        .key = key,
                                        .from = from,
                                        .to = true,
                                        .message = "ranks reduce gradients",
                                        .fix = {}});
  };
  add("comm_overlap.overlap_grad_reduce", nullptr);
  add("ddp.overlap_grad_reduce", false);
  add("ddp.align_param_gather", false);
  const std::string text = to_text(report, Detail::Verbose);
  EXPECT_TRUE(contains(text,
                       "  C33     comm_overlap.overlap_grad_reduce (also of ddp): null -> true "
                       "(ranks reduce gradients)\n"
                       "  C33     ddp.align_param_gather: false -> true"))
      << text;
  EXPECT_TRUE(contains(to_text(report), "--verbose lists 2 keys")) << to_text(report);
}

// check refuses what train refuses before its first step: both call one function.
TEST(CheckCommand, WhatTrainRefusesBeforeItsFirstStepIsFound) {
  for (const char* words :
       {"tiny world=2 checkpoint.save_hf=x model.moe_shared_expert_intermediate_size=64",
        "tiny dataset.path=" WEFT_SOURCE_DIR "/LICENSE model.seq_length=20000"}) {
    const Json json = check(words, 2);
    EXPECT_EQ(json["legal"], false);
    EXPECT_EQ(json["runs"], false);
    ASSERT_TRUE(has_id(json["errors"], "W71")) << json["errors"];
    const Outcome train = weft(std::string("train ") + words);
    EXPECT_EQ(train.code, 2) << train.err;
    EXPECT_TRUE(contains(train.err, json["errors"][0]["message"])) << train.err;
  }
}

TEST(CheckCommand, AFileThatIsNotHereIsAWarning) {
  const Json json = check("tiny dataset.kind=indexed dataset.path=/no/such/data", 0);
  EXPECT_EQ(json["legal"], true);
  EXPECT_TRUE(has_id(json["warnings"], "W71"));
  const Json load = check("tiny checkpoint.load=/no/such/checkpoint", 0);
  EXPECT_TRUE(load["legal"]);
  EXPECT_TRUE(has_id(load["warnings"], "W71"));
  EXPECT_EQ(weft("train tiny checkpoint.load=/no/such/checkpoint").code, 2);
}

TEST(CheckCommand, AnUnknownWordIsOneErrorBesideAllOthers) {
  const Json json = check("tiny --no-such-flag a b model.num_layers=0 model.hidden_size=x", 2);
  EXPECT_EQ(json["errors"].size(), 3u) << json["errors"];
  EXPECT_TRUE(has_id(json["errors"], "W31"));
  EXPECT_TRUE(has_id(json["errors"], "W1"));
  const Outcome train = weft("train tiny --no-such-flag a b model.num_layers=0");
  EXPECT_EQ(train.code, 2);
  EXPECT_TRUE(contains(train.err, "--no-such-flag")) << train.err;
  EXPECT_TRUE(contains(train.err, "model.num_layers = 0")) << train.err;
}

TEST(CheckCommand, WhatIsNotModelledIsJudgedAndNotTrained) {
  const Json json = check("tiny dataset.eod_mask_loss=true", 0);
  EXPECT_TRUE(json["legal"]);
  EXPECT_EQ(json["runs"], false);
  EXPECT_TRUE(has_id(json["warnings"], "H21"));
  const Outcome train = weft("train tiny dataset.eod_mask_loss=true");
  EXPECT_EQ(train.code, 2);
  EXPECT_TRUE(contains(train.err, "every token counts in the loss")) << train.err;
}

TEST(CheckCommand, AScheduleOfTooManyNodesIsRefusedBeforeItIsPlanned) {
  const Json json = check("tiny pp=1000 model.num_layers=1000 world=2000 gbs=10000 --schedule", 1);
  EXPECT_EQ(json["schedule"]["valid"], false);
  EXPECT_TRUE(contains(json["schedule"]["complaints"][0], "at most 4e+06 are built"))
      << json["schedule"];
  // The process would have all ranks, the plan has one: both name the number of one rank.
  const std::string each = "1000 make a schedule of about 6.25e+07 nodes";
  EXPECT_TRUE(contains(json["schedule"]["complaints"][0], each + ", and")) << json["schedule"];
  const auto of_process = std::ranges::find_if(json["missing"], [&](const Json& part) {
    return contains(part["message"], each + " a rank, 1.25e+11 on 2000 ranks, and");
  });
  EXPECT_NE(of_process, json["missing"].end()) << json["missing"];
}

}  // namespace check_test
}  // namespace weft::cli
