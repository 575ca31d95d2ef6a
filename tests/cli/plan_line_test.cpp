// Pasted lines in commands that need more than a run.
#include "weft/cli/plan/plan_line.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/text.h"

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
