// Experts, router, capacity, layout of experts, and sequences.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace expert_cases_test {

#define MOE "model.num_moe_experts=8 model.moe_ffn_hidden_size=32 "

TEST(Experts, TheirWidthIsSaid) {
  for (const Case& c : {
           Case{.name = "as the dense layers",
          .words = "model.num_moe_experts=4 model.ffn_hidden_size=96",
          .warnings = "TC-6",
          .after = "model.moe_ffn_hidden_size=96"},
           Case{.name = "four times the stream",
           .words = "model.num_moe_experts=4 model.hidden_size=32",
           .after = "model.moe_ffn_hidden_size=128"},
           Case{.name = "none", .words = "model.num_moe_experts=-1", .errors = "TC-5"},
           Case{.name = "a width alone", .words = "model.moe_ffn_hidden_size=8", .errors = "TC-7"},
           Case{.name = "biases on whole experts",
           .words = MOE "model.add_bias_linear=true model.tensor_model_parallel_size=2 "
                        "model.expert_tensor_parallel_size=1"},
       }) {
    expect_settled(c);
  }
}

TEST(Experts, TensorParallelismOfExpertsFollowsTheBridge) {
  for (const Case& c : {
           Case{.name = "TF-01",
          .words = "model.sequence_parallel=true",
          .automatic = "B2",
          .after = "model.sequence_parallel=false"},
           Case{.name = "TF-02",
           .words = "model.sequence_parallel=true model.tensor_model_parallel_size=2",
           .after = "model.sequence_parallel=true"},
           Case{.name = "TF-04",
           .words = MOE "model.tensor_model_parallel_size=2 "
                        "model.expert_model_parallel_size=4 train.global_batch_size=2",
           .automatic = "B3",
           .after = "model.expert_tensor_parallel_size=1"},
           Case{.name = "TF-05",
           .words = MOE "model.tensor_model_parallel_size=4 "
                        "model.expert_model_parallel_size=2 "
                        "model.expert_tensor_parallel_size=2",
           .after = "model.expert_tensor_parallel_size=2"},
       }) {
    expect_settled(c);
  }
}

TEST(Experts, RouterOptionsFitTogether) {
  for (const Case& c : {
           Case{.name = "many experts, no dtype",
          .words = "model.num_moe_experts=64",
          .warnings = "TC-10"},
           Case{.name = "one expert of sigmoid scores",
           .words = MOE "model.moe_router_topk=1 model.moe_router_score_function=sigmoid"},
           Case{.name = "one expert by sinkhorn",
           .words = MOE "model.moe_router_topk=1 "
                        "model.moe_router_load_balancing_type=sinkhorn"},
           Case{.name = "a bias on sigmoid scores",
           .words = MOE "model.moe_router_score_function=sigmoid "
                        "model.moe_router_enable_expert_bias=true"},
           Case{.name = "two losses, two coefficients",
           .words = MOE "model.moe_router_load_balancing_type=[aux_loss,seq_aux_loss] "
                        "model.moe_aux_loss_coeff=[0.1,0.01]"},
           Case{.name = "one loss, two coefficients",
           .words = MOE "model.moe_aux_loss_coeff=[0.1,0.01]",
           .errors = "TC-40"},
           Case{.name = "groups",
           .words = MOE "model.moe_router_num_groups=4 model.moe_router_group_topk=2"},
           Case{.name = "too many groups picked",
           .words = MOE "model.moe_router_num_groups=4 model.moe_router_group_topk=5",
           .errors = "TC-43"},
           Case{.name = "more experts than the groups hold",
           .words = MOE "model.moe_router_num_groups=4 model.moe_router_group_topk=1 "
                        "model.moe_router_topk=8",
           .errors = "TC-43"},
           Case{.name = "a group ranked by more experts than it has",
           .words = MOE "model.moe_router_num_groups=4 model.moe_router_group_topk=2 "
                        "model.moe_router_group_score_topk=9",
           .errors = "TC-43"},
           Case{.name = "uneven groups",
           .words = MOE "model.moe_router_num_groups=3",
           .errors = "TC-43"},
           Case{.name = "padding by allgather",
           .words = MOE "model.fp8=e4m3 model.moe_router_padding_for_quantization=true "
                        "model.moe_token_dispatcher_type=allgather",
           .errors = "TC-46"},
           Case{.name = "capacity with balance by quantiles",
           .words = MOE "model.moe_expert_capacity_factor=1.25 "
                        "model.moe_router_load_balancing_type=quantile_balancing",
           .errors = "TC-37"},
       }) {
    expect_settled(c);
  }
}

TEST(Experts, ABudgetOfARankNeedsABackendThatKeepsCountsOnTheDevice) {
#define HYBRID                                                                                 \
  MOE "model.expert_model_parallel_size=2 train.global_batch_size=2 runtime.ranks_per_node=1 " \
      "model.moe_token_dispatcher_type=flex "                                                  \
      "model.moe_flex_dispatcher_backend=hybridep "                                            \
      "model.moe_expert_rank_capacity_factor=1.5 "
  for (const Case& c : {
           Case{.name = "grouped products of CPU ranks read them", .words = HYBRID},
           Case{.name = "the op fuser is nothing to them",
           .words = HYBRID "model.use_transformer_engine_op_fuser=true",
           .warnings = "W22"},
           Case{.name = "alltoall",
           .words = HYBRID "model.moe_token_dispatcher_type=alltoall",
           .errors = "TC-39"},
           Case{.name = "deepep",
           .words = HYBRID "model.moe_flex_dispatcher_backend=deepep",
           .errors = "TC-39"},
           Case{.name = "hybridep, not fused",
           .words = HYBRID "hardware.gpu=gb200",
           .errors = "TC-39"},
           Case{.name = "hybridep, fused",
           .words = HYBRID "hardware.gpu=gb200 model.use_transformer_engine_op_fuser=true"},
           Case{.name = "hybridep, grouped", .words = HYBRID "model.moe_use_grouped_tensor=true"},
           Case{.name = "paged",
           .words = HYBRID "model.moe_use_grouped_tensor=true model.moe_paged_stash=true"},
           Case{.name = "paged and offloaded",
           .words = HYBRID "model.moe_use_grouped_tensor=true model.moe_paged_stash=true "
                           "model.fine_grained_activation_offloading=true "
                           "model.offload_modules=[moe_act]",
           .errors = "TC-47"},
       }) {
    expect_settled(c);
  }
}

TEST(Experts, ARefusedBudgetOffersWhatRuns) {
  const Verdict verdict = judge_words(HYBRID "model.moe_token_dispatcher_type=alltoall");
  ASSERT_EQ(verdict.errors.size(), 1u);
  EXPECT_EQ(verdict.errors[0].fix,
            "use model.moe_token_dispatcher_type=flex and "
            "model.moe_flex_dispatcher_backend=hybridep");
}

TEST(Experts, ABudgetIsEnoughForATokenAndForTheMean) {
  for (const Case& c : {
           Case{.name = "not a single token",
          .words = HYBRID "model.moe_expert_rank_capacity_factor=0.001",
          .errors = "W65"},
           Case{.name = "below the mean",
           .words = HYBRID "model.moe_expert_rank_capacity_factor=0.5",
           .errors = "W65"},
           Case{.name = "below the mean of all, above that of the kept",
           .words = HYBRID "model.moe_expert_rank_capacity_factor=0.5 "
                           "model.moe_expert_capacity_factor=0.5"},
           Case{.name = "the mean", .words = HYBRID "model.moe_expert_rank_capacity_factor=1"},
           Case{.name = "enough, but not for a slice",
           .words = HYBRID "model.moe_expert_rank_capacity_factor=0.02 model.seq_length=64 "
                           "model.moe_expert_capacity_factor=0.02 comm_overlap.moe_token_slices=2",
           .errors = "W65"},
       }) {
    expect_settled(c);
  }
}
#undef HYBRID

// Refused or without effect, never both.
TEST(Experts, WhatHasNoEffectOnOneRankIsNotRefused) {
  for (const Case& c : {
           Case{.name = "a budget",
          .words = MOE "model.moe_token_dispatcher_type=flex "
                       "model.moe_flex_dispatcher_backend=hybridep "
                       "model.moe_expert_rank_capacity_factor=0.5",
          .warnings = "W20"},
           Case{.name = "a budget that is refused",
           .words = MOE "model.moe_expert_rank_capacity_factor=1.5",
           .errors = "TC-39"},
           Case{.name = "slices of one token",
           .words = MOE "model.seq_length=1 comm_overlap.moe_token_slices=2",
           .warnings = "W20"},
           Case{.name = "padded slices",
           .words = MOE "model.moe_expert_capacity_factor=1 comm_overlap.moe_token_slices=2 "
                        "model.moe_pad_expert_input_to_capacity=true",
           .warnings = "W20"},
       }) {
    expect_settled(c);
  }
}

TEST(Experts, SharedExpertsRunUnderAnAllGatherOfCpuRanks) {
#define SHARED                                                        \
  MOE "model.expert_model_parallel_size=2 train.global_batch_size=2 " \
      "model.moe_shared_expert_intermediate_size=32 model.moe_shared_expert_overlap=true "
  for (const Case& c : {
           Case{.name = "allgather",
          .words = SHARED "model.moe_token_dispatcher_type=allgather",
          .warnings = "W69"},
           Case{.name = "allgather on GPUs",
           .words = SHARED "hardware.gpu=h100 model.moe_token_dispatcher_type=allgather",
           .errors = "TC-33"},
           Case{.name = "alltoall_seq",
           .words = SHARED "model.moe_token_dispatcher_type=alltoall_seq",
           .errors = "TC-33"},
       }) {
    expect_settled(c);
  }
#undef SHARED
}

TEST(Experts, HeadsOfLatentAttentionAreNotGroupedAndTurnInPairs) {
#define LATENT "model.multi_latent_attention=true model.num_attention_heads=4 "
  for (const Case& c : {
           Case{.name = "as many as heads", .words = LATENT "model.num_query_groups=4"},
           Case{.name = "grouped", .words = LATENT "model.num_query_groups=2", .errors = "W2"},
           Case{.name = "groups that do not divide",
           .words = LATENT "model.num_query_groups=3",
           .errors = "W2"},
           Case{.name = "an odd turned part",
           .words = LATENT "model.qk_pos_emb_head_dim=7",
           .errors = "W4"},
           Case{.name = "odd widths elsewhere",
           .words = LATENT "model.qk_head_dim=7 model.v_head_dim=5"},
       }) {
    expect_settled(c);
  }
#undef LATENT
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

TEST(Context, SequencesDivideIntoTwoPiecesARank) {
  for (const Case& c : {
           Case{.name = "VC-10 512", .words = "model.context_parallel_size=2 model.seq_length=512"},
           Case{.name = "VC-10 510",
           .words = "model.context_parallel_size=2 model.seq_length=510",
           .errors = "V4"},
           Case{.name = "VC-10 cp 3",
           .words = "model.context_parallel_size=3 model.seq_length=256",
           .errors = "V4"},
           Case{.name = "not shared", .words = "model.seq_length=255"},
           Case{.name = "the data's own", .words = "dataset.seq_length=64"},
           Case{.name = "the data differs", .words = "dataset.seq_length=32", .errors = "V9"},
           Case{.name = "one word a layer",
           .words = "model.context_parallel_size=2 model.cp_comm_type=[p2p,a2a]"},
           Case{.name = "a hierarchy",
           .words = "model.context_parallel_size=4 model.cp_comm_type=a2a+p2p "
                    "model.hierarchical_context_parallel_sizes=[2,2]"},
           Case{.name = "a hierarchy of another size",
           .words = "model.context_parallel_size=4 model.cp_comm_type=a2a+p2p "
                    "model.hierarchical_context_parallel_sizes=[2,4]",
           .errors = "V8"},
           Case{.name = "delta nets over tp*cp",
           .words = "model.linear_attention_freq=4 model.linear_num_key_heads=2 "
                    "model.linear_num_value_heads=4 model.context_parallel_size=4",
           .errors = "TC-11"},
       }) {
    expect_settled(c);
  }
}

}  // namespace expert_cases_test
}  // namespace weft::rules

#undef MOE
#undef HYBRID
#undef SHARED
#undef LATENT
