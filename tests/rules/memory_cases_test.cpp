// Recomputation, offload, and packed data.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace memory_cases_test {

#define SELECT "model.recompute_granularity=selective "
#define OFFLOAD "model.fine_grained_activation_offloading=true "

TEST(Recomputation, ModulesAndLayersAreChosenApart) {
  for (const Case& c : {
           Case{.name = "core attention where nothing is named",
          .words = SELECT,
          .warnings = "TC-54",
          .automatic = "TC-51",
          .after = "model.recompute_modules=[core_attn]"},
           Case{.name = "none named",
           .words = SELECT "model.recompute_modules=[]",
           .warnings = "W123",
           .after = "model.recompute_modules=[]"},
           Case{.name = "off", .words = "", .after = "model.recompute_modules=null"},
           Case{.name = "full", .words = "model.recompute_granularity=full", .errors = "TC-49"},
           Case{.name = "full with all of it",
           .words = "model.recompute_granularity=full model.recompute_method=block "
                    "model.recompute_num_layers=1",
           .after = "model.recompute_modules=null"},
           Case{.name = "more layers than a stage has",
           .words = "model.recompute_granularity=full model.recompute_method=block "
                    "model.recompute_num_layers=3 model.num_layers=4 "
                    "model.pipeline_model_parallel_size=2",
           .warnings = "W124"},
           Case{.name = "more layers in a row than there are",
           .words = "model.recompute_granularity=full model.recompute_method=uniform "
                    "model.recompute_num_layers=9 model.num_layers=4",
           .warnings = "W124"},
           Case{.name = "delta nets' norm",
           .words = SELECT "model.recompute_modules=[gdn_norm_out]",
           .errors = "TC-53"},
           Case{.name = "MLA",
           .words = SELECT "model.recompute_modules=[mla_up_proj] "
                           "model.multi_latent_attention=true"},
           Case{.name = "experts not grouped",
           .words = SELECT "model.num_moe_experts=4 model.recompute_modules=[moe_act] "
                           "model.moe_grouped_gemm=false",
           .errors = "TC-53"},
       }) {
    expect_settled(c);
  }
}

TEST(Offload, EveryModuleIsMovedByOneWay) {
  for (const Case& c : {
           Case{.name = "layers of a pipeline",
          .words = "model.cpu_offloading=true model.cpu_offloading_num_layers=1 "
                   "model.pipeline_model_parallel_size=2",
          .errors = "TC-57"},
           Case{.name = "recomputed layers",
           .words = SELECT "model.recompute_modules=[mlp] model.cpu_offloading=true "
                           "model.cpu_offloading_num_layers=1",
           .errors = "TC-57"},
           Case{.name = "some layers",
           .words = "model.cpu_offloading=true model.cpu_offloading_num_layers=1"},
           Case{.name = "attention with its projection",
           .words = OFFLOAD "model.offload_modules=[core_attn,attn_proj]"},
           Case{.name = "of whole layers that are recomputed, all but their input",
           .words = OFFLOAD "model.offload_modules=[attn_norm,core_attn,attn_proj] "
                            "model.recompute_granularity=full model.recompute_method=uniform "
                            "model.recompute_num_layers=1",
           .warnings = "W98 W98"},
           Case{.name = "a fused feed-forward",
           .words = OFFLOAD "model.num_moe_experts=4 model.offload_modules=[fused_group_mlp] "
                            "model.use_transformer_engine_op_fuser=true"},
           Case{.name = "a fused feed-forward and its part",
           .words = OFFLOAD "model.num_moe_experts=4 "
                            "model.offload_modules=[fused_group_mlp,expert_fc1] "
                            "model.use_transformer_engine_op_fuser=true",
           .errors = "TC-58e"},
           Case{.name = "of no layer",
           .words = OFFLOAD "model.offload_modules=[core_attn] "
                            "model.activation_offload_fraction=0",
           .warnings = "W125"},
           Case{.name = "far more than all",
           .words = OFFLOAD "model.offload_modules=[core_attn] "
                            "model.activation_offload_fraction=30",
           .errors = "TC-58f"},
           Case{.name = "less than nothing",
           .words = OFFLOAD "model.offload_modules=[core_attn] "
                            "model.activation_offload_fraction=-0.5",
           .errors = "TC-58f"},
           Case{.name = "a share of the optimizer",
           .words = "optimizer.optimizer_cpu_offload=true "
                    "optimizer.optimizer_offload_fraction=1.5",
           .errors = "W1"},
       }) {
    expect_settled(c);
  }
  EXPECT_EQ(find_rule("TC-58")->id, "TC-58a");
}

// Fixes name parts that are built.
TEST(Memory, AFixSaysWhatIsNotBuilt) {
  for (const char* words :
       {"model.fine_grained_activation_offloading=true",
        OFFLOAD "model.num_moe_experts=4 model.offload_modules=[fused_group_mlp]",
        "optimizer.exp_avg_dtype=fp8"}) {
    const Verdict verdict = judge_words(words);
    ASSERT_FALSE(verdict.errors.empty()) << words;
    EXPECT_TRUE(std::ranges::any_of(verdict.errors, [](const config::Finding& error) {
      return error.fix.find("not built") != std::string::npos ||
             error.fix.find("fp8 is not") != std::string::npos;
    })) << words;
  }
}

#define PACKED "dataset.packed_sequence_size=64 "
#define TE "model.cuda_graph_impl=transformer_engine model.use_te_rng_tracker=true "

TEST(Data, PackedSequencesHaveFixedShapesUnderGraphs) {
  for (const Case& c : {
           Case{.name = "V3",
          .words = "model.pipeline_model_parallel_size=2 dataset.pad_to_max_length=false",
          .automatic = "V3",
          .after = "dataset.pad_to_max_length=true"},
           Case{.name = "one rank", .words = "", .after = "dataset.pad_to_max_length=null"},
           Case{.name = "packed, no graphs", .words = PACKED},
           Case{.name = "packed under a graph of the feed-forward",
           .words = PACKED TE "model.cuda_graph_modules=[mlp] dataset.pad_to_max_length=true"},
           Case{.name = "packed under a graph of the layer",
           .words = PACKED TE "dataset.pad_to_max_length=true",
           .errors = "V14"},
           Case{.name = "packed under a graph of the layer, padded",
           .words = PACKED TE "dataset.pad_to_max_length=true dataset.pad_cu_seqlens=true"},
           Case{.name = "both packings",
           .words = PACKED "dataset.pack_sequences_in_batch=true train.micro_batch_size=2 "
                           "train.global_batch_size=2",
           .errors = "V15"},
           Case{.name = "a batch of one",
           .words = "dataset.pack_sequences_in_batch=true",
           .errors = "V15"},
           Case{.name = "B5",
           .words = "dataset.pack_sequences_in_batch=true train.micro_batch_size=2 "
                    "train.global_batch_size=2 model.pipeline_model_parallel_size=2",
           .after = "model.variable_seq_lengths=true"},
       }) {
    expect_settled(c);
  }
}

TEST(Recomputation, AllLayersOfAStageAreNotTooMany) {
  const std::string words =
      "model.recompute_granularity=full model.recompute_method=block model.num_layers=4 "
      "model.pipeline_model_parallel_size=2 model.recompute_num_layers=";
  EXPECT_FALSE(ids_of(judge_words(words + "2").warnings).contains("W124"));
  EXPECT_TRUE(ids_of(judge_words(words + "3").warnings).contains("W124"));
}

// A missing part is refused with an equivalent that is built, and the reason.
TEST(Offload, WhatIsNotBuiltNamesWhatIs) {
  const auto fix_of = [](std::string_view words) {
    const Verdict verdict = judge_words(words);
    EXPECT_TRUE(verdict.legal()) << words;
    EXPECT_EQ(verdict.missing.size(), 1u) << words;
    return verdict.missing.empty() ? "" : verdict.missing.front().fix;
  };
  const auto begins = [](const std::string& fix, std::string_view wanted) {
    EXPECT_TRUE(fix.starts_with(wanted)) << fix;
    EXPECT_GT(fix.size(), wanted.size()) << "why it is not built: " << fix;
  };
  begins(fix_of(OFFLOAD "model.num_moe_experts=4 model.use_transformer_engine_op_fuser=true "
                        "model.offload_modules=[attn_norm,fused_group_mlp]"),
         "use model.offload_modules=[attn_norm,expert_fc1,moe_act]: ");
  begins(fix_of("model.cpu_offloading=true model.cpu_offloading_num_layers=1"),
         "use model.cpu_offloading=false model.fine_grained_activation_offloading=true "
         "model.offload_modules=[core_attn,attn_proj]: ");
  begins(fix_of("model.bf16=true ddp.use_distributed_optimizer=true "
                "optimizer.use_distributed_optimizer=true "
                "optimizer.use_precision_aware_optimizer=true optimizer.exp_avg_dtype=fp8 "
                "optimizer.exp_avg_sq_dtype=fp8"),
         "use optimizer.exp_avg_dtype=bf16 optimizer.exp_avg_sq_dtype=bf16: ");
}

TEST(Recomputation, ModulesThatTheModelDoesNotHaveAreWarnedOf) {
#define SELECT "model.recompute_granularity=selective "
#define MOE "model.num_moe_experts=4 "
  const auto warned = [](std::string_view words) {
    const Verdict verdict = judge_words(words);
    EXPECT_TRUE(verdict.legal()) << words;
    return ids_of(verdict.warnings).contains("W72");
  };
  EXPECT_TRUE(warned(SELECT MOE "model.recompute_modules=[shared_experts]"));
  EXPECT_TRUE(warned(SELECT MOE "model.recompute_modules=[mlp]"));
  EXPECT_TRUE(warned(SELECT "model.recompute_modules=[moe]"));
  EXPECT_FALSE(warned(SELECT "model.recompute_modules=[mlp]"));
  EXPECT_FALSE(warned(SELECT MOE "model.moe_layer_freq=[0,1] model.recompute_modules=[mlp,moe]"));
  EXPECT_FALSE(warned(SELECT MOE "model.moe_shared_expert_intermediate_size=64 "
                                 "model.recompute_modules=[shared_experts]"));
#undef SELECT
#undef MOE
}

}  // namespace memory_cases_test
}  // namespace weft::rules

#undef SELECT
#undef OFFLOAD
#undef PACKED
#undef TE
