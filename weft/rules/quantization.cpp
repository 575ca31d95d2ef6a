// GEMMs in fp8 and fp4: legal combinations, and support by the GPU.
#include "weft/derive/gpu.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr int kHopper = 9;
using derive::kBlackwell;

bool is_delayed(const ModelConfig& model) {
  return model.fp8 && model.fp8_recipe == Fp8Recipe::Delayed;
}

bool is_mxfp8(const ModelConfig& model) {
  return model.fp8 && model.fp8_recipe == Fp8Recipe::Mxfp8;
}

// "mxfp8", "nvfp4", ...: the scaling recipe of the low precision.
std::string_view recipe_word(const ModelConfig& model) {
  return model.fp8 ? word(model.fp8_recipe) : word(model.fp4_recipe);
}

void judge_one_format(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fp8 || !model.fp4) return;
  judge.report("model.fp4",
               text("model.fp4 = {} beside model.fp8 = {}", word(*model.fp4), word(*model.fp8)),
               "keep one of them");
}

void judge_parameters_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.fp8_param && !model.fp8) {
    judge.report("model.fp8_param",
                 "model.fp8_param keeps parameters in fp8, and model.fp8 = null",
                 "set model.fp8, or leave model.fp8_param out");
  }
  if (model.fp4_param && !model.fp4) {
    judge.report("model.fp4_param",
                 "model.fp4_param keeps parameters in fp4, and model.fp4 = null",
                 "set model.fp4, or leave model.fp4_param out");
  }
}

void judge_delayed_recompute(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_delayed(model)) return;
  for (const RecomputeModule module : {RecomputeModule::MoeAct, RecomputeModule::Layernorm}) {
    if (!recomputes(model, module)) continue;
    judge.report(
        "model.recompute_modules",
        text("recomputing {} with model.fp8_recipe = delayed would count its values twice "
             "in the history",
             word(module)),
        text("take {} out, or use another model.fp8_recipe such as tensorwise", word(module)));
  }
}

void judge_delayed_ends(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_delayed(model) || !model.first_last_layers_bf16) return;
  judge.report("model.first_last_layers_bf16",
               "model.first_last_layers_bf16 with model.fp8_recipe = delayed",
               "use another model.fp8_recipe such as tensorwise, or leave the former out");
}

void judge_end_layers(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.first_last_layers_bf16) return;
  if (!judge.sound({"model.num_layers", "model.pipeline_model_parallel_size"})) return;
  const std::int64_t pp = model.pipeline_model_parallel_size, most = model.num_layers / pp;
  const auto check = [&](const char* key, std::int64_t layers) {
    if (!judge.sound({key}) || (layers >= 0 && layers <= most)) return;
    judge.report(key,
                 text("{} = {}, and a stage has model.num_layers / pp = {}/{} = {} layers",
                      key,
                      layers,
                      model.num_layers,
                      pp,
                      most),
                 text("use a number from 0 to {}", most));
  };
  check("model.num_layers_at_start_in_bf16", model.num_layers_at_start_in_bf16);
  check("model.num_layers_at_end_in_bf16", model.num_layers_at_end_in_bf16);
}

void judge_output_projection(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fp8_output_proj || is_mxfp8(model)) return;
  judge.report("model.fp8_output_proj",
               text("model.fp8_output_proj needs mxfp8, and model.fp8 = {}, model.fp8_recipe = {}",
                    model.fp8 ? word(*model.fp8) : "null",
                    word(model.fp8_recipe)),
               "set model.fp8=e4m3 model.fp8_recipe=mxfp8, or leave it out");
}

void judge_grouped_weight(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_single_grouped_weight) return;
  const bool fused = model.use_transformer_engine_op_fuser || model.moe_use_grouped_tensor;
  if (!model.moe_grouped_gemm || !fused) {
    judge.report(
        "model.moe_single_grouped_weight",
        text("model.moe_single_grouped_weight with model.moe_grouped_gemm = {}, "
             "model.use_transformer_engine_op_fuser = {}, model.moe_use_grouped_tensor = {}",
             model.moe_grouped_gemm,
             model.use_transformer_engine_op_fuser,
             model.moe_use_grouped_tensor),
        "set model.moe_grouped_gemm=true and one of the others");
  }
  const bool plain = model.bf16 && !is_quantized(model);
  if (plain || is_mxfp8(model) || (model.fp4 && model.fp4_param)) return;
  judge.report("model.moe_single_grouped_weight",
               text("model.moe_single_grouped_weight holds bf16, mxfp8 or nvfp4 parameters, and "
                    "model.params_dtype = {}, model.fp8 = {}, model.fp4_param = {}",
                    name_of(model.params_dtype),
                    model.fp8 ? recipe_word(model) : "null",
                    model.fp4_param),
               "set model.bf16=true without model.fp8, model.fp8_recipe=mxfp8, or model.fp4_param");
}

void judge_mxfp8_gather(Judge& judge) {
  const DdpConfig& ddp = judge.config().ddp;
  if (ddp.use_megatron_fsdp || !ddp.fp8_param_gather || !is_mxfp8(judge.model())) return;
  if (ddp.reuse_grad_buf_for_mxfp8_param_ag) return;
  judge.report("ddp.reuse_grad_buf_for_mxfp8_param_ag",
               "ddp.fp8_param_gather with model.fp8_recipe = mxfp8 gathers through the gradient "
               "buffer",
               "set ddp.reuse_grad_buf_for_mxfp8_param_ag=true");
}

// Major compute capability, if the run is for a GPU with a known one.
std::optional<int> known_major(const Judge& judge) {
  if (!judge.on_gpu() || !judge.sound_section("hardware.")) return std::nullopt;
  return derive::gpu_facts(judge.config().hardware).major;
}

void judge_hopper(Judge& judge) {
  const std::optional<int> major = known_major(judge);
  if (!is_quantized(judge.model()) || !major || *major >= kHopper) return;
  judge.report(judge.model().fp8 ? "model.fp8" : "model.fp4",
               text("{} is of compute capability {}, and products in fp8 come with 9 (Hopper)",
                    derive::gpu_facts(judge.config().hardware).name,
                    *major),
               "set model.fp8=null model.fp4=null, or judge for another hardware.gpu");
}

void judge_blackwell(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::optional<int> major = known_major(judge);
  if (!major || *major < kHopper || *major >= kBlackwell) return;
  if (!is_mxfp8(model) && !model.fp4) return;
  judge.report(model.fp4 ? "model.fp4_recipe" : "model.fp8_recipe",
               text("{} is of compute capability {}, and {} scales come with 10 (Blackwell)",
                    derive::gpu_facts(judge.config().hardware).name,
                    *major,
                    model.fp4 ? word(model.fp4_recipe) : word(model.fp8_recipe)),
               "use model.fp8_recipe=blockwise or tensorwise there");
}

constexpr Rule kQuantizationRules[] = {
    {.id = "V28",
     .when = "model.fp4 and model.fp8",
     .then = "refused",
     .why = "A product runs in one of them.",
     .example = "model.fp8=e4m3 model.fp4=e2m1",
     .judge = judge_one_format},
    {.id = "TC-102",
     .when = "model.fp8_param without model.fp8, or model.fp4_param without model.fp4",
     .then = "refused",
     .why = "Parameters are kept in the format of the products that read them.",
     .example = "model.fp8_param=true",
     .judge = judge_parameters_alone},
    {.id = "TC-55",
     .when = "fp8 with delayed scales, and moe_act or layernorm recomputed",
     .then = "refused",
     .why = "Delayed scales come from a history of the values seen; a second forward would enter "
            "them again.",
     .example = "model.fp8=hybrid model.recompute_granularity=selective "
                "model.recompute_modules=[layernorm]",
     .judge = judge_delayed_recompute},
    {.id = "TC-100",
     .when = "fp8 with delayed scales and model.first_last_layers_bf16",
     .then = "refused",
     .why = "The history of scales belongs to all layers together.",
     .example = "model.fp8=hybrid model.first_last_layers_bf16=true",
     .judge = judge_delayed_ends},
    {.id = "TC-101",
     .when = "first or last layers in bf16 outside 0 to layers / pp",
     .then = "refused",
     .why = "They lie in the first and in the last stage.",
     .example = "model.fp8=hybrid model.fp8_recipe=tensorwise model.first_last_layers_bf16=true "
                "model.num_layers_at_start_in_bf16=3",
     .judge = judge_end_layers},
    {.id = "TC-104",
     .when = "model.fp8_output_proj without model.fp8, or with a recipe other than mxfp8",
     .then = "refused",
     .why = "The LM head is kept in high precision by every other recipe.",
     .example = "model.fp8=e4m3 model.fp8_recipe=blockwise model.fp8_output_proj=true",
     .judge = judge_output_projection},
    {.id = "TC-105",
     .when = "model.moe_single_grouped_weight without grouped products, without the op fuser or "
             "grouped tensors, or in other than bf16, mxfp8 or nvfp4 with model.fp4_param",
     .then = "refused",
     .why = "One parameter for all experts of a rank is read by the fused grouped product only.",
     .example = "model.num_moe_experts=4 model.bf16=true model.moe_single_grouped_weight=true",
     .judge = judge_grouped_weight},
    {.id = "V21",
     .when = "ddp.fp8_param_gather with mxfp8, without ddp.reuse_grad_buf_for_mxfp8_param_ag and "
             "without fully sharded parameters",
     .then = "refused",
     .why = "mxfp8 keeps a row-wise and a column-wise copy; what is gathered needs a buffer before "
            "it becomes both.",
     .example = "model.bf16=true model.fp8=e4m3 model.fp8_recipe=mxfp8 model.fp8_param=true "
                "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "
                "ddp.fp8_param_gather=true",
     .judge = judge_mxfp8_gather},
    {.id = "W28",
     .when = "model.fp8 or model.fp4 on a GPU below compute capability 9",
     .then = "refused",
     .why =
         "Tensor cores multiply fp8 from Hopper on; delayed and tensorwise scales serve there and "
         "later. CPU ranks are not judged.",
     .example = "hardware.gpu=a100 model.fp8=hybrid",
     .judge = judge_hopper},
    {.id = "W29",
     .when = "mxfp8 or nvfp4 on a GPU of compute capability 9",
     .then = "refused",
     .why = "Scales for blocks of 32 and 16 values are read by the tensor cores of Blackwell; "
            "Hopper's own recipe is blockwise.",
     .example = "hardware.gpu=h100 model.fp8=e4m3 model.fp8_recipe=mxfp8",
     .judge = judge_blackwell},
};

}  // namespace

std::span<const Rule> quantization_rules() { return kQuantizationRules; }

}  // namespace weft::rules
