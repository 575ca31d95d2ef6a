// Dtypes that follow each other; fp8 and fp4 by recipe and GPU.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {

using namespace config;
namespace precision_cases_test {

#define SHARED "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "

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

}  // namespace precision_cases_test
}  // namespace weft::rules

#undef SHARED
