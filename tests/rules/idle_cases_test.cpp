// Keys without effect are reported, each once.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace idle_cases_test {

bool warns_of(std::string_view words, std::string_view key) {
  const Verdict verdict = judge_words(words);
  EXPECT_TRUE(verdict.legal()) << words;
  return std::ranges::any_of(verdict.warnings, [&](const config::Finding& warning) {
    return warning.key == key && warning.message.find("no effect") != std::string::npos;
  });
}

const std::string kOverlap =
    "model.num_moe_experts=8 model.expert_model_parallel_size=2 train.global_batch_size=8 "
    "comm_overlap.overlap_moe_expert_parallel_comm=true comm_overlap.delay_wgrad_compute=true ";

TEST(Idle, AnOrderFromFilesLeavesNothingToTheKeysThatMakeOne) {
  for (const char* key :
       {"comm_overlap.overlap_moe_expert_parallel_comm", "comm_overlap.delay_wgrad_compute"}) {
    EXPECT_TRUE(warns_of(kOverlap + "runtime.schedule=orders", key)) << key;
    EXPECT_FALSE(warns_of(kOverlap, key)) << key;
  }
}

TEST(Idle, RowsAreMergedInOnePassWhereTheyComeBackByThemselves) {
  constexpr std::string_view kKey = "model.moe_permute_fusion";
  const std::string fused = "model.moe_permute_fusion=true ";
  const std::string experts = fused + "model.num_moe_experts=8 model.moe_token_dispatcher_type=";
  EXPECT_TRUE(warns_of(fused, kKey));
  EXPECT_TRUE(warns_of(experts + "allgather", kKey));
  EXPECT_FALSE(warns_of(experts + "alltoall", kKey));
}

TEST(Idle, GradientsOverLogitsAreNeverIdle) {
  constexpr std::string_view kKey = "model.cross_entropy_loss_fusion";
  for (const char* words : {"", " model.bf16=true"}) {
    EXPECT_FALSE(warns_of(std::string(kKey) + "=true" + words, kKey)) << words;
  }
}

TEST(Idle, StepsOfATraceNeedATrace) {
  EXPECT_TRUE(warns_of("runtime.trace_steps=5", "runtime.trace_steps"));
  EXPECT_FALSE(warns_of("runtime.trace_steps=5 runtime.trace=true", "runtime.trace_steps"));
}

TEST(Idle, FusedRotationNeedsANormOfEachHead) {
  const std::string_view key = "model.apply_rope_fusion";
  EXPECT_TRUE(warns_of("model.apply_rope_fusion=true", key));
  EXPECT_TRUE(warns_of("model.apply_rope_fusion=true model.qk_layernorm=projection", key));
  EXPECT_FALSE(warns_of("model.apply_rope_fusion=true model.qk_layernorm=head", key));
}

}  // namespace idle_cases_test
}  // namespace weft::rules
