// Storage formats of the optimizer's state.
#include <cmath>

#include "weft/config/field.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr const char* kStateDtypes[] = {"optimizer.exp_avg_dtype",
                                        "optimizer.exp_avg_sq_dtype",
                                        "optimizer.main_grads_dtype",
                                        "optimizer.main_params_dtype"};

void judge_state_without_shards(Judge& judge) {
  const Config& config = judge.config();
  if (!config.optimizer.use_precision_aware_optimizer) return;
  if (config.ddp.use_distributed_optimizer || config.optimizer.use_distributed_optimizer) return;
  judge.report("optimizer.use_precision_aware_optimizer",
               "optimizer.use_precision_aware_optimizer needs a distributed optimizer, and "
               "ddp.use_distributed_optimizer = false: Megatron-Core has the one in the other "
               "alone, and would not start this run",
               "set ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true; "
               "with one data-parallel rank that changes nothing else");
}

void judge_dtypes_of_their_own(Judge& judge) {
  if (judge.config().optimizer.use_precision_aware_optimizer) return;
  for (const char* key : kStateDtypes) {
    const Field& field = *find_field(key);
    if (is_default(field, judge.config())) continue;
    const std::string value = value_text(field, judge.config());
    const bool is_built = value.find("fp8") == std::string::npos;
    judge.report(
        key,
        text("{} = {} without optimizer.use_precision_aware_optimizer, whose state is fp32 "
             "throughout",
             key,
             value),
        is_built ? text("set optimizer.use_precision_aware_optimizer=true, or {}=fp32", key)
                 : text("set {0}=fp32; with optimizer.use_precision_aware_optimizer=true {0}=bf16 "
                        "and fp16 are built, fp8 is not",
                        key));
  }
}

// Smallest decay of a moment per step, as a fraction. A smaller fraction than half of the last
// digit would leave the moment unchanged. In fp16 the second moment is stored as its root, which
// decays by half as much.
struct LeastShare {
  base::DType dtype = base::DType::F32;
  double first = 0, second = 0;
};
constexpr LeastShare kLeastShares[] = {
    {.dtype = base::DType::BF16, .first = 1.0 / 256, .second = 1.0 / 256},
    {.dtype = base::DType::F16, .first = 1.0 / 2048, .second = 1.0 / 1024}};

void judge_standing_moments(Judge& judge) {
  const OptimizerConfig& optimizer = judge.config().optimizer;
  if (!optimizer.use_precision_aware_optimizer) return;
  if (!judge.sound({"optimizer.adam_beta1", "optimizer.adam_beta2"})) return;
  const auto check = [&](const char* key, const char* beta_key, double beta, double least) {
    if (1 - beta >= least) return;
    judge.report(key,
                 text("{} = {} with {} = {}: a moment that should shrink by {:.2g} of itself in a "
                      "step is rounded back to what it was; it takes {:.2g} to be sure",
                      key,
                      value_text(*find_field(key), judge.config()),
                      beta_key,
                      beta,
                      1 - beta,
                      least),
                 text("set {}=fp32, or a smaller {}", key, beta_key));
  };
  for (const LeastShare& row : kLeastShares) {
    if (optimizer.exp_avg_dtype == row.dtype) {
      check("optimizer.exp_avg_dtype", "optimizer.adam_beta1", optimizer.adam_beta1, row.first);
    }
    if (optimizer.exp_avg_sq_dtype == row.dtype) {
      check("optimizer.exp_avg_sq_dtype", "optimizer.adam_beta2", optimizer.adam_beta2, row.second);
    }
  }
}

void judge_half_masters(Judge& judge) {
  const Config& config = judge.config();
  if (!config.optimizer.use_precision_aware_optimizer) return;
  if (config.optimizer.main_params_dtype != base::DType::F16) return;
  judge.report("optimizer.main_params_dtype",
               "optimizer.main_params_dtype = fp16 keeps 11 bits of a master weight: a step that "
               "changes a weight by less than 1/4096 of it is lost",
               "set optimizer.main_params_dtype=fp32: with optimizer.store_param_remainders=true "
               "it takes the same two bytes of a bf16 run, and loses nothing");
}

constexpr Rule kOptimizerStateRules[] = {
    {.id = "W120",
     .when = "optimizer.use_precision_aware_optimizer without a distributed optimizer",
     .then = "refused",
     .why = "Megatron-Core has dtypes of the state in its distributed optimizer alone, and Weft "
            "judges a run as it does, so that it can go there. With dp = 1 the distributed "
            "optimizer changes nothing else.",
     .example = "model.bf16=true optimizer.use_precision_aware_optimizer=true",
     .judge = judge_state_without_shards},
    {.id = "W121",
     .when = "a dtype of moments, main gradients or main parameters other than fp32 without "
             "optimizer.use_precision_aware_optimizer",
     .then = "refused",
     .why = "Only a precision-aware optimizer has dtypes of its own, as in Megatron-Core.",
     .example = "optimizer.exp_avg_dtype=bf16",
     .judge = judge_dtypes_of_their_own},
    {.id = "W122",
     .kind = Kind::Warning,
     .when = "a moment in bf16 or fp16 whose beta is so near to 1 that a step's change is less "
             "than half of its last digit",
     .then = "warned",
     .why = "Rounded to nearest, such a moment stands still: a second moment that was large once "
            "stays large, and its parameter hardly moves again.",
     .example = "model.bf16=true ddp.use_distributed_optimizer=true "
                "optimizer.use_distributed_optimizer=true "
                "optimizer.use_precision_aware_optimizer=true optimizer.exp_avg_sq_dtype=bf16 "
                "optimizer.adam_beta2=0.999",
     .judge = judge_standing_moments},
    {.id = "W127",
     .kind = Kind::Warning,
     .when = "optimizer.main_params_dtype=fp16 of a precision-aware optimizer",
     .then = "warned",
     .why =
         "Small steps do not add up in 11 bits. The 16-bit remainder form is as small and exact.",
     .example = "model.bf16=true ddp.use_distributed_optimizer=true "
                "optimizer.use_distributed_optimizer=true "
                "optimizer.use_precision_aware_optimizer=true optimizer.main_params_dtype=fp16",
     .judge = judge_half_masters},
};

}  // namespace

std::span<const Rule> optimizer_state_rules() { return kOptimizerStateRules; }

}  // namespace weft::rules
