// Experts, router, capacity, layout of experts, and sequences.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace expert_cases_test {

#define MOE "model.num_moe_experts=8 model.moe_ffn_hidden_size=32 "

TEST(Experts, ARefusedBudgetOffersWhatRuns) {
  const Verdict verdict = judge_words(
      MOE
      "model.expert_model_parallel_size=2 train.global_batch_size=2 runtime.ranks_per_node=1 "
      "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep "
      "model.moe_expert_rank_capacity_factor=1.5 model.moe_token_dispatcher_type=alltoall");
  ASSERT_EQ(verdict.errors.size(), 1u);
  EXPECT_EQ(verdict.errors[0].fix,
            "use model.moe_token_dispatcher_type=flex and "
            "model.moe_flex_dispatcher_backend=hybridep");
}

// The range refuses numbers out of range; later rules neither divide by them nor overflow.
TEST(Experts, AbsurdSizesAreOnlyOutOfRange) {
  for (const char* size : {"0", "-1", "9223372036854775807"}) {
    for (const char* key : {"model.tensor_model_parallel_size",
                            "model.expert_model_parallel_size",
                            "model.pipeline_model_parallel_size",
                            "model.context_parallel_size",
                            "model.moe_router_num_groups",
                            "hardware.compute_capability"}) {
      const std::string words =
          std::string(MOE
                      "hardware.gpu=gb200 model.moe_token_dispatcher_type=flex "
                      "model.moe_flex_dispatcher_backend=ncclep model.fp8=e4m3 "
                      "model.moe_expert_rank_capacity_factor=1 model.first_last_layers_bf16=true "
                      "model.moe_router_topk_limited_devices=2 model.linear_attention_freq=2 "
                      "model.cp_comm_type=a2a+p2p model.expert_tensor_parallel_size=1048576 ") +
          key + "=" + size;
      EXPECT_TRUE(ids_of(judge_words(words).errors).contains("W1")) << words;
    }
  }
}

}  // namespace expert_cases_test
}  // namespace weft::rules

#undef MOE
