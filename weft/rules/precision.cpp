// Dtypes of weights, activations and optimizer. quantization.cpp has fp8 and fp4.
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

const char* switch_word(bool on) { return on ? "true" : "false"; }

void judge_two_halves(Judge& judge) {
  const auto check = [&](const char* section, bool bf16, bool fp16) {
    if (!bf16 || !fp16) return;
    judge.report(text("{}.fp16", section),
                 text("{0}.bf16 and {0}.fp16 are both true", section),
                 text("keep one of them"));
  };
  check("model", judge.model().bf16, judge.model().fp16);
  check("optimizer", judge.config().optimizer.bf16, judge.config().optimizer.fp16);
}

// Dtype that model.bf16 and model.fp16 select; nullopt: neither or both.
std::optional<base::DType> switched_dtype(const ModelConfig& model) {
  if (model.bf16 == model.fp16) return std::nullopt;
  return model.bf16 ? base::DType::BF16 : base::DType::F16;
}

void judge_dtype_contradiction(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto asked = switched_dtype(model);
  if (!asked || model.params_dtype == *asked || model.params_dtype == base::DType::F32) return;
  judge.report("model.params_dtype",
               text("model.params_dtype = {} beside model.{} = true",
                    name_of(model.params_dtype),
                    name_of(*asked)),
               text("leave one of them out"));
}

void judge_dtype(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (const auto asked = switched_dtype(model)) {
    if (model.params_dtype != base::DType::F32) return;
    judge.set("model.params_dtype", name_of(*asked), text("model.{} = true", name_of(*asked)));
  } else if (!model.bf16 && model.params_dtype != base::DType::F32) {
    const std::string_view dtype = name_of(model.params_dtype);
    judge.set(text("model.{}", dtype), "true", text("model.params_dtype = {}", dtype));
  }
}

std::string_view optimizer_dtype(const OptimizerConfig& optimizer) {
  return name_of(optimizer.bf16   ? base::DType::BF16
                 : optimizer.fp16 ? base::DType::F16
                                  : base::DType::F32);
}

bool optimizer_differs(const Config& config) {
  return config.optimizer.bf16 != config.model.bf16 || config.optimizer.fp16 != config.model.fp16;
}

bool halves_are_clear(const Config& config) {
  return !(config.model.bf16 && config.model.fp16) &&
         !(config.optimizer.bf16 && config.optimizer.fp16);
}

// True if the user chose the dtype of a precision-aware optimizer.
bool optimizer_is_chosen(const OptimizerConfig& optimizer) {
  return optimizer.use_precision_aware_optimizer && (optimizer.bf16 || optimizer.fp16);
}

void judge_aware_optimizer(Judge& judge) {
  const Config& config = judge.config();
  if (!halves_are_clear(config) || !optimizer_is_chosen(config.optimizer)) return;
  if (!optimizer_differs(config)) return;
  judge.report(
      "optimizer.use_precision_aware_optimizer",
      text("optimizer.use_precision_aware_optimizer with an optimizer for {} and a model in "
           "{}",
           optimizer_dtype(config.optimizer),
           config.model.bf16   ? "bf16"
           : config.model.fp16 ? "fp16"
                               : name_of(config.model.params_dtype)),
      text("set optimizer.bf16={} optimizer.fp16={}",
           switch_word(config.model.bf16),
           switch_word(config.model.fp16)));
}

void judge_optimizer_dtype(Judge& judge) {
  const Config& config = judge.config();
  if (!halves_are_clear(config) || optimizer_is_chosen(config.optimizer)) return;
  judge.set("optimizer.bf16",
            switch_word(config.model.bf16),
            text("model.bf16 = {}", switch_word(config.model.bf16)));
  judge.set("optimizer.fp16",
            switch_word(config.model.fp16),
            text("model.fp16 = {}", switch_word(config.model.fp16)));
}

void judge_dtypes(Judge& judge) {
  judge_dtype(judge);
  judge_optimizer_dtype(judge);
}

void judge_pipeline_dtype(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.pipeline_model_parallel_size <= 1 || model.pipeline_dtype) return;
  judge.set("model.pipeline_dtype",
            name_of(model.params_dtype),
            text("between stages (pp = {}) values keep their dtype, model.params_dtype = {}",
                 model.pipeline_model_parallel_size,
                 name_of(model.params_dtype)));
}

void judge_residual_dtype(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fp32_residual_connection || !model.pipeline_dtype) return;
  if (*model.pipeline_dtype == base::DType::F32) return;
  judge.set("model.pipeline_dtype",
            "fp32",
            text("model.fp32_residual_connection keeps in fp32 what stages exchange, and "
                 "model.pipeline_dtype = {}",
                 name_of(*model.pipeline_dtype)),
            "set model.pipeline_dtype=fp32");
}

constexpr Rule kPrecisionRules[] = {
    {.id = "V19",
     .when = "bf16 and fp16 both true, of the model or of the optimizer",
     .then = "refused",
     .why = "Weights have one dtype.",
     .example = "model.bf16=true model.fp16=true",
     .also = "TC-3",
     .judge = judge_two_halves},
    {.id = "W27",
     .when = "model.params_dtype is bf16 with model.fp16, or fp16 with model.bf16",
     .then = "refused",
     .why = "The switches and the dtype say the same thing; here they do not.",
     .example = "model.bf16=true model.params_dtype=fp16",
     .judge = judge_dtype_contradiction},
    {.id = "V20",
     .when =
         "optimizer.use_precision_aware_optimizer, and optimizer.bf16 or fp16 is set and is not "
         "the model's",
     .then = "refused",
     .why = "Such an optimizer keeps its own copies by the dtype of the parameters it is told.",
     .example = "model.bf16=true optimizer.fp16=true ddp.use_distributed_optimizer=true "
                "optimizer.use_distributed_optimizer=true "
                "optimizer.use_precision_aware_optimizer=true",
     .judge = judge_aware_optimizer},
    {.id = "W26",
     .kind = Kind::Automatic,
     .when = "one of model.bf16, model.fp16 and model.params_dtype is set, or the optimizer's "
             "switches differ from the model's",
     .then = "model.params_dtype := the switch, or the switch := it; optimizer.bf16 and fp16 := "
             "the model's",
     .why = "One choice, of which Megatron has five keys. Any of the model's decides.",
     .example = "model.bf16=true",
     .judge = judge_dtypes},
    {.id = "B1",
     .kind = Kind::Automatic,
     .when = "pp > 1 and model.pipeline_dtype is null",
     .then = "model.pipeline_dtype := model.params_dtype",
     .why = "What stages exchange is what the layers compute with. Megatron-Core alone refuses a "
            "pipeline without the key (MP-3).",
     .example = "model.pipeline_model_parallel_size=2",
     .also = "MP-3",
     .judge = judge_pipeline_dtype},
    {.id = "TC-106",
     .kind = Kind::Mended,
     .when = "model.fp32_residual_connection and model.pipeline_dtype is not fp32",
     .then = "model.pipeline_dtype := fp32",
     .why = "Stages exchange the residual stream; in fewer bits it would not be kept in fp32.",
     .example = "model.bf16=true model.pipeline_model_parallel_size=2 "
                "model.fp32_residual_connection=true",
     .judge = judge_residual_dtype},
};

}  // namespace

std::span<const Rule> precision_rules() { return kPrecisionRules; }

}  // namespace weft::rules
