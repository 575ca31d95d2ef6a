// Recomputation, offload, and packed data.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace memory_cases_test {

#define SELECT "model.recompute_granularity=selective "
#define OFFLOAD "model.fine_grained_activation_offloading=true "

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
#undef MOE
}

}  // namespace memory_cases_test
}  // namespace weft::rules

#undef SELECT
#undef OFFLOAD
