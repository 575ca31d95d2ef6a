// Dtypes that follow each other; fp8 and fp4 by recipe and GPU.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {

using namespace config;
namespace precision_cases_test {

TEST(Precision, SwitchesAndDtypeFollowEachOther) {
  for (const Case& c : {
           Case{.name = "by the switch",
          .words = "model.bf16=true",
          .automatic = "W26",
          .after = "model.params_dtype=bf16 optimizer.bf16=true optimizer.fp16=false"},
           Case{.name = "by the dtype",
           .words = "model.params_dtype=bf16",
           .automatic = "W26",
           .after = "model.bf16=true model.fp16=false optimizer.bf16=true"},
           Case{.name = "fp16",
           .words = "model.fp16=true",
           .after = "model.params_dtype=fp16 optimizer.fp16=true"},
           Case{.name = "fp16 by the dtype",
           .words = "model.params_dtype=fp16",
           .after = "model.fp16=true"},
           Case{.name = "the optimizer follows",
           .words = "model.bf16=true optimizer.fp16=true",
           .after = "optimizer.bf16=true optimizer.fp16=false"},
           Case{.name = "fp32 stays",
           .words = "",
           .after = "model.bf16=false optimizer.bf16=false"},
       }) {
    expect_settled(c);
  }
}

#define SHARED "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "

TEST(Precision, ContradictionsAreRefused) {
  for (const Case& c : {
           Case{.name = "both", .words = "model.bf16=true model.fp16=true", .errors = "V19"},
           Case{.name = "the optimizer's both",
           .words = "optimizer.bf16=true optimizer.fp16=true",
           .errors = "V19"},
           Case{.name = "dtype against switch",
           .words = "model.fp16=true model.params_dtype=bf16",
           .errors = "W27"},
           Case{.name = "a precision-aware optimizer told otherwise",
           .words = SHARED "model.fp16=true optimizer.bf16=true "
                           "optimizer.use_precision_aware_optimizer=true",
           .errors = "V20"},
           Case{.name = "a precision-aware optimizer told nothing",
           .words = SHARED "model.bf16=true optimizer.use_precision_aware_optimizer=true",
           .after = "optimizer.bf16=true"},
           Case{.name = "fp4 beside fp8",
           .words = "model.fp8=e4m3 model.fp4=e2m1",
           .errors = "V28"},
           Case{.name = "fp4 parameters", .words = "model.fp4_param=true", .errors = "TC-102"},
       }) {
    expect_settled(c);
  }
}

TEST(Precision, TheOptimizerHasDtypesOfItsOwn) {
#define AWARE SHARED "model.bf16=true optimizer.use_precision_aware_optimizer=true "
  for (const Case& c : {
           Case{.name = "moments", .words = AWARE "optimizer.exp_avg_dtype=bf16"},
           Case{.name = "both moments, whole masters",
           .words = AWARE "optimizer.exp_avg_dtype=fp16 optimizer.exp_avg_sq_dtype=fp16 "
                          "optimizer.store_param_remainders=false"},
           Case{.name = "not distributed",
           .words = "model.bf16=true optimizer.use_precision_aware_optimizer=true",
           .errors = "W120"},
           Case{.name = "one of the two switches",
           .words = "optimizer.use_distributed_optimizer=true "
                    "optimizer.use_precision_aware_optimizer=true",
           .after = "ddp.use_distributed_optimizer=true"},
           Case{.name = "not aware",
           .words = SHARED "optimizer.exp_avg_sq_dtype=bf16 optimizer.main_grads_dtype=bf16",
           .errors = "W121"},
           Case{.name = "remainders of what is not kept",
           .words = "optimizer.store_param_remainders=false",
           .warnings = "W21"},
           Case{.name = "a second moment in bf16 that moves",
           .words = AWARE "optimizer.exp_avg_sq_dtype=bf16 optimizer.adam_beta2=0.99"},
           Case{.name = "one that does not",
           .words = AWARE "optimizer.exp_avg_sq_dtype=bf16 optimizer.adam_beta2=0.999",
           .warnings = "W122"},
           Case{.name = "one in fp16 that does",
           .words = AWARE "optimizer.exp_avg_sq_dtype=fp16 optimizer.adam_beta2=0.999"},
           Case{.name = "one in fp16 that does not",
           .words = AWARE "optimizer.exp_avg_sq_dtype=fp16 optimizer.adam_beta2=0.9999",
           .warnings = "W122"},
           Case{.name = "masters in fp16",
           .words = AWARE "optimizer.main_params_dtype=fp16",
           .warnings = "W127"},
       }) {
    expect_settled(c);
  }
  EXPECT_EQ(judge_words(AWARE "optimizer.exp_avg_dtype=fp8").missing.size(), 1u);
  EXPECT_EQ(judge_words(AWARE "optimizer.main_grads_dtype=bf16").missing.size(), 0u);
#undef AWARE
}

TEST(Precision, StagesExchangeTheDtypeOfTheLayers) {
  for (const Case& c : {
           Case{.name = "B1",
          .words = "model.bf16=true model.pipeline_model_parallel_size=2",
          .automatic = "B1",
          .after = "model.pipeline_dtype=bf16"},
           Case{.name = "no stages",
           .words = "model.bf16=true",
           .after = "model.pipeline_dtype=null"},
           Case{.name = "kept",
           .words = "model.bf16=true model.pipeline_model_parallel_size=2 "
                    "model.pipeline_dtype=fp32",
           .after = "model.pipeline_dtype=fp32"},
           Case{.name = "an fp32 residual stream",
           .words = "model.bf16=true model.pipeline_model_parallel_size=2 "
                    "model.pipeline_dtype=bf16 model.fp32_residual_connection=true",
           .warnings = "TC-106",
           .after = "model.pipeline_dtype=fp32"},
       }) {
    expect_settled(c);
  }
}

TEST(Precision, RecipesNeedTheirGpu) {
#define MXFP8 "model.fp8=e4m3 model.fp8_recipe=mxfp8 "
  for (const Case& c : {
           Case{.name = "delayed on h100", .words = "model.fp8=hybrid hardware.gpu=h100"},
           Case{.name = "delayed on a100",
           .words = "model.fp8=hybrid hardware.gpu=a100",
           .errors = "W28"},
           Case{.name = "mxfp8 on a100", .words = MXFP8 "hardware.gpu=a100", .errors = "W28"},
           Case{.name = "mxfp8 on h100", .words = MXFP8 "hardware.gpu=h100", .errors = "W29"},
           Case{.name = "mxfp8 on gb200", .words = MXFP8 "hardware.gpu=gb200"},
           Case{.name = "nvfp4 on h100",
           .words = "model.fp4=e2m1 hardware.gpu=h100",
           .errors = "W29"},
           Case{.name = "nvfp4 on b300", .words = "model.fp4=e2m1 hardware.gpu=b300"},
           Case{.name = "blockwise on h100",
           .words = "model.fp8=e4m3 model.fp8_recipe=blockwise hardware.gpu=h100"},
           Case{.name = "CPU ranks are not judged", .words = MXFP8},
           Case{.name = "not published", .words = MXFP8 "hardware.gpu=vr200"},
       }) {
    expect_settled(c);
  }
#undef MXFP8
}

TEST(Precision, TheGpuNamesItsFacts) {
  for (const Case& c : {
           Case{.name = "gb200",
          .words = "hardware.gpu=gb200",
          .automatic = "W25",
          .after = "hardware.compute_capability=10 hardware.gpus_per_node=4"},
           Case{.name = "what is given is kept",
           .words = "hardware.gpu=h100 hardware.device_name=mine hardware.gpus_per_node=2",
           .after = "hardware.device_name=mine hardware.compute_capability=9 "
                    "hardware.gpus_per_node=2"},
           Case{.name = "not published",
           .words = "hardware.gpu=vr200",
           .after = "hardware.compute_capability=null hardware.gpus_per_node=4"},
       }) {
    expect_settled(c);
  }
  EXPECT_EQ(judge_words("hardware.gpu=h100").config.hardware.device_name, "NVIDIA H100 80GB HBM3");
}

TEST(Precision, DelayedScalesSeeEveryValueOnce) {
#define FP8 "model.fp8=hybrid model.recompute_granularity=selective "
  for (const Case& c : {
           Case{.name = "moe_act",
          .words = FP8 "model.num_moe_experts=4 model.recompute_modules=[moe_act]",
          .errors = "TC-55"},
           Case{.name = "tensorwise",
           .words = FP8 "model.fp8_recipe=tensorwise model.recompute_modules=[layernorm]"},
           Case{.name = "mlp", .words = FP8 "model.recompute_modules=[mlp]"},
           Case{.name = "layers at the end",
           .words = "model.fp8=e4m3 model.fp8_recipe=tensorwise model.num_layers=4 "
                    "model.pipeline_model_parallel_size=2 model.first_last_layers_bf16=true "
                    "model.num_layers_at_end_in_bf16=3",
           .errors = "TC-101"},
           Case{.name = "the output in fp8 alone",
           .words = "model.fp8_output_proj=true",
           .errors = "TC-104"},
           Case{.name = "the output in mxfp8",
           .words = "model.fp8=e4m3 model.fp8_recipe=mxfp8 model.fp8_output_proj=true"},
       }) {
    expect_settled(c);
  }
#undef FP8
}

}  // namespace precision_cases_test
}  // namespace weft::rules

#undef MXFP8
#undef FP8
#undef SHARED
