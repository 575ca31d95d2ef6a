// Pasted lines in commands that need more than a run.
#include "weft/cli/plan/plan_line.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/text.h"
#include "weft/cli/judge/check_run.h"
#include "weft/cli/run/start_model.h"

namespace weft::cli {
namespace plan_line_test {

PlanOptions typed(std::string_view line) {
  PlanOptions options;
  options.run.words = base::split(line, ' ');
  return options;
}

TEST(PlanLine, ALineOfTheHarnessIsAQuestionWithItsGpusAndItsBatch) {
  const auto question = question_of_line(
      typed("uv run python run_script.py -m qwen -mr qwen3_30b_a3b -g h100 -c bf16 -ng 16"));
  ASSERT_TRUE(question && question->model);
  EXPECT_EQ(question->model->name, "qwen3_30b_a3b");
  EXPECT_EQ(question->model->config.model.expert_model_parallel_size, 1);
  ASSERT_EQ(question->model->own.size(), 1u);
  EXPECT_EQ(question->model->own[0].config.model.expert_model_parallel_size, 16);
  EXPECT_EQ(question->search.gpus, 16);
  EXPECT_EQ(question->search.batch, 1024);
  EXPECT_EQ(question->search.precision, "bf16");
  EXPECT_EQ(question->gpu, "h100");
}

TEST(PlanLine, ALineOfMegatronLmIsAQuestionAboutTheModelOfItsFlags) {
  const auto question = question_of_line(
      typed("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 "
            "--num-attention-heads 16 --vocab-size 32000 --seq-length 2048 "
            "--max-position-embeddings 2048 --micro-batch-size 1 --bf16 --swiglu "
            "--tensor-model-parallel-size 2 --global-batch-size 64"));
  ASSERT_TRUE(question && question->model);
  EXPECT_EQ(question->model->config.model.hidden_size, 1024);
  EXPECT_EQ(question->model->config.model.tensor_model_parallel_size, 1);
  EXPECT_EQ(question->search.gpus, 8);
  EXPECT_EQ(question->search.batch, 64);
  EXPECT_EQ(question->search.sequence, 2048);
  EXPECT_FALSE(question_of_line(typed("deepseek_v3 ep=8")));
}

constexpr std::string_view kLine =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 "
    "--num-attention-heads 16 --vocab-size 32000 --num-experts 8 --load /checkpoints/ck";

bool warns(const words::Resolution& run, std::string_view id) {
  return std::ranges::find(run.warnings, id, &config::Finding::id) != run.warnings.end();
}

TEST(PlanLine, TheGpuOfTheOptionIsThatOfTheLine) {
  PlanOptions options = typed(kLine);
  EXPECT_TRUE(warns(resolve(with_asked_gpu(options)), "H20"));
  options.gpu = "h200";
  const words::Resolution run = resolve(with_asked_gpu(options));
  EXPECT_FALSE(warns(run, "H20"));
  EXPECT_EQ(run.config.hardware.gpu, config::Gpu::H200);
  options.run.words.push_back("hardware.gpu=b200");  // the line's own stays
  EXPECT_EQ(resolve(with_asked_gpu(options)).config.hardware.gpu, config::Gpu::B200);
}

TEST(PlanLine, ALineHasOneName) {
  const PlanOptions options = typed(kLine);
  const words::Resolution run = resolve(options.run);
  EXPECT_EQ(name_of_run(run, run.config), "megatron-line");
  EXPECT_EQ(check_run({.run = options.run}).recipe, "megatron-line");
  EXPECT_EQ(question_of_line(options)->model->name, "megatron-line");
  EXPECT_EQ(question_of_line(options)->model->own.at(0).name, "megatron-line");
}

// H16 names the defaults of Megatron-LM's parser.
TEST(PlanLine, DefaultsThatChooseNothingAreNoWarning) {
  const auto chooses_nothing = [](std::string line) {
    const CheckReport report = check_run({.run = typed(line).run});
    return std::ranges::any_of(report.verdict.warnings, [](const config::Finding& warning) {
      return warning.id == "W22" && warning.key == "model.moe_grouped_gemm";
    });
  };
  EXPECT_FALSE(chooses_nothing(std::string(kLine)));
  EXPECT_TRUE(chooses_nothing(std::string(kLine) + " --no-moe-grouped-gemm"));
}

// One error beside all others, which stops no judging.
TEST(PlanLine, AnUnknownWordStopsNoJudging) {
  const CheckReport report =
      check_run({.run = typed(std::string(kLine) + " --no-such-flag x hardware.gpu=h100").run});
  ASSERT_EQ(report.verdict.errors.size(), 1u);
  EXPECT_EQ(report.verdict.errors[0].id, "W31");
  EXPECT_EQ(report.readable, Readable::Yes);
  EXPECT_TRUE(report.derived);
  EXPECT_TRUE(!report.fits.empty() || !report.limits.empty());
  const auto is_about_files = [](const config::Finding& warning) { return warning.id == "W71"; };
  EXPECT_TRUE(std::ranges::any_of(report.verdict.warnings, is_about_files));
  // A value that cannot be read changes the run: the rules judge the rest.
  const CheckReport unread =
      check_run({.run = typed(std::string(kLine) + " train.micro_batch_size=x").run});
  EXPECT_EQ(unread.verdict.errors.size(), 1u);
  EXPECT_FALSE(unread.derived);
}

TEST(PlanLine, WhatCannotBeTrainedIsRefusedBeforeAnythingStarts) {
  const auto complaints = [](std::string_view line) {
    return complaints_of([&] { require_trainable(resolve(typed(line).run)); });
  };
  EXPECT_TRUE(any_names(
      complaints("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64"),
      {"vocab_size is not known", "--vocab-size"}));
  EXPECT_TRUE(any_names(complaints("tiny --dryrun"), {"--dryrun", "weft check"}));
  EXPECT_TRUE(complaints("tiny").empty());
}

}  // namespace plan_line_test
}  // namespace weft::cli
