// Activations and optimizer state in host memory.
#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_layers(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.cpu_offloading) return;
  if (model.pipeline_model_parallel_size > 1) {
    judge.report("model.cpu_offloading",
                 text("model.cpu_offloading with model.pipeline_model_parallel_size = {}",
                      model.pipeline_model_parallel_size),
                 "set model.pipeline_model_parallel_size=1, or offload by module "
                 "(model.fine_grained_activation_offloading)");
  }
  if (model.recompute_granularity) {
    judge.report("model.cpu_offloading",
                 text("model.cpu_offloading with model.recompute_granularity = {}: what is "
                      "recomputed need not be kept",
                      word(*model.recompute_granularity)),
                 "leave one of them out");
  }
  if (!judge.sound({"model.num_layers", "model.cpu_offloading_num_layers"})) return;
  const std::int64_t layers = model.cpu_offloading_num_layers;
  if (layers >= 0 && layers < model.num_layers) return;
  judge.report("model.cpu_offloading_num_layers",
               text("model.cpu_offloading_num_layers = {} of model.num_layers = {}",
                    layers,
                    model.num_layers),
               text("use a number from 0 to {}", model.num_layers - 1));
}

void judge_two_offloads(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fine_grained_activation_offloading || !model.cpu_offloading) return;
  judge.report("model.fine_grained_activation_offloading",
               "model.fine_grained_activation_offloading and model.cpu_offloading both move "
               "activations",
               "keep one of them");
}

void judge_no_modules(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fine_grained_activation_offloading || !model.offload_modules.empty()) return;
  judge.report("model.offload_modules",
               "model.fine_grained_activation_offloading and model.offload_modules = []",
               "name some of core_attn, attn_proj, attn_norm, mlp_norm, qkv_linear, expert_fc1, "
               "moe_act; fused_group_mlp is not built");
}

void judge_projection_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!offloads(model, OffloadModule::AttnProj) || offloads(model, OffloadModule::CoreAttn)) return;
  judge.report("model.offload_modules",
               text("model.offload_modules = {} has attn_proj and not core_attn",
                    typed_list(model.offload_modules)),
               "add core_attn, or take attn_proj out");
}

void judge_recomputed(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!recomputes(model, RecomputeModule::Moe)) return;
  for (const OffloadModule module :
       {OffloadModule::MoeAct, OffloadModule::ExpertFc1, OffloadModule::FusedGroupMlp}) {
    if (!offloads(model, module)) continue;
    judge.report("model.offload_modules",
                 text("{} is offloaded, and recomputing moe does not keep it", word(module)),
                 text("take {} out, or moe out of model.recompute_modules", word(module)));
  }
}

void judge_fused(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!offloads(model, OffloadModule::FusedGroupMlp)) return;
  if (!model.use_transformer_engine_op_fuser) {
    judge.report("model.offload_modules",
                 "fused_group_mlp is offloaded without model.use_transformer_engine_op_fuser",
                 "offload expert_fc1 and moe_act, which are its parts; fused_group_mlp is not "
                 "built, with the op fuser either");
  }
  for (const OffloadModule module : {OffloadModule::ExpertFc1, OffloadModule::MoeAct}) {
    if (!offloads(model, module)) continue;
    judge.report("model.offload_modules",
                 text("fused_group_mlp and {} both name the experts' rows", word(module)),
                 text("take {} out", word(module)));
  }
}

void judge_fraction(Judge& judge) {
  const ModelConfig& model = judge.model();
  const double fraction = model.activation_offload_fraction;
  if (!model.fine_grained_activation_offloading || (fraction >= 0 && fraction <= 1)) return;
  judge.answer_for("model.activation_offload_fraction",
                   text("model.activation_offload_fraction = {} is not a share", fraction),
                   "use a number from 0 to 1");
}

void judge_no_share(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fine_grained_activation_offloading || model.activation_offload_fraction != 0) return;
  judge.report("model.activation_offload_fraction",
               "model.fine_grained_activation_offloading with model.activation_offload_fraction = "
               "0 offloads no layer",
               "use a share above 0, at most 1, or leave the offload out");
}

bool keeps_inputs_alone(const ModelConfig& model) {
  return model.recompute_granularity == RecomputeGranularity::Full &&
         model.recompute_method != RecomputeMethod::Block;
}

// Reason why a module cannot be offloaded; empty: it can.
std::string why_it_stays(const Judge& judge, OffloadModule module) {
  const ModelConfig& model = judge.model();
  const auto recomputed = [&](RecomputeModule by) {
    return recomputes(model, by)
               ? text("{} is recomputed, and what is recomputed is not kept", word(by))
               : std::string();
  };
  const std::string dense = "model.num_moe_experts = null";
  if (keeps_inputs_alone(model) && module != OffloadModule::AttnNorm) {
    return "whole layers are recomputed, and of these the input alone is kept, which is "
           "attn_norm's";
  }
  switch (module) {
    case OffloadModule::CoreAttn:
      if (derive::norms_across_ranks(model)) {
        return text("model.qk_layernorm = projection is a norm over {} ranks, which is kept",
                    model.tensor_model_parallel_size);
      }
      return model.multi_latent_attention ? recomputed(RecomputeModule::MlaUpProj) : "";
    case OffloadModule::AttnProj:
      // With exchanged heads, the projection's input is a separate tensor.
      return derive::exchanges_heads(model) ? "" : recomputed(RecomputeModule::CoreAttn);
    case OffloadModule::QkvLinear:
      return recomputed(RecomputeModule::Layernorm);
    case OffloadModule::ExpertFc1:
    case OffloadModule::MoeAct:
      return model.experts() > 0 ? "" : dense;
    case OffloadModule::AttnNorm:
    case OffloadModule::MlpNorm:
    case OffloadModule::FusedGroupMlp:
      break;
  }
  return "";
}

void judge_idle_offloads(Judge& judge) {
  const ModelConfig& model = judge.model();
  for (const OffloadModule module : model.offload_modules) {
    if (!offloads(model, module)) continue;
    const std::string why = why_it_stays(judge, module);
    if (why.empty()) continue;
    judge.report("model.offload_modules",
                 text("{} is to be offloaded and stays: {}", word(module), why),
                 text("take {} out of model.offload_modules", word(module)));
  }
}

void judge_optimizer_share(Judge& judge) {
  const OptimizerConfig& optimizer = judge.config().optimizer;
  if (!optimizer.optimizer_cpu_offload || optimizer.optimizer_offload_fraction != 0) return;
  judge.report(
      "optimizer.optimizer_offload_fraction",
      "optimizer.optimizer_cpu_offload with optimizer.optimizer_offload_fraction = 0 keeps "
      "nothing in host memory",
      "set a share above 0, at most 1");
}

void judge_save_of_offloaded(Judge& judge) {
  const OptimizerConfig& optimizer = judge.config().optimizer;
  const bool is_offloaded =
      optimizer.optimizer_cpu_offload && optimizer.optimizer_offload_fraction > 0;
  if (!is_offloaded || !judge.config().checkpoint.async_save) return;
  judge.set(
      "checkpoint.async_save",
      "false",
      "checkpoint.async_save with optimizer.optimizer_cpu_offload: offloaded state is written "
      "from where it lies, and the run waits meanwhile",
      "set checkpoint.async_save=false, or leave the offload out");
}

constexpr Rule kOffloadRules[] = {
    {.id = "TC-57",
     .when = "model.cpu_offloading with pp > 1, with recomputation, or of all layers or more",
     .then = "refused",
     .why =
         "Whole layers travel to the host and back in the order of one forward and one backward.",
     .example = "model.cpu_offloading=true model.cpu_offloading_num_layers=2",
     .judge = judge_layers},
    {.id = "TC-58a",
     .when = "fine-grained offload with model.cpu_offloading",
     .then = "refused",
     .why = "Two ways to move the same values.",
     .example = "model.cpu_offloading=true model.cpu_offloading_num_layers=1 "
                "model.fine_grained_activation_offloading=true model.offload_modules=[core_attn]",
     .also = "TC-58",
     .judge = judge_two_offloads},
    {.id = "TC-58b",
     .when = "fine-grained offload without modules",
     .then = "refused",
     .why = "Nothing would be moved.",
     .example = "model.fine_grained_activation_offloading=true",
     .judge = judge_no_modules},
    {.id = "TC-58c",
     .when = "attn_proj offloaded without core_attn",
     .then = "refused",
     .why = "The projection's input is the attention's output; one copy serves both.",
     .example = "model.fine_grained_activation_offloading=true model.offload_modules=[attn_proj]",
     .judge = judge_projection_alone},
    {.id = "TC-58d",
     .when = "moe recomputed, and moe_act, expert_fc1 or fused_group_mlp offloaded",
     .then = "refused",
     .why = "What is recomputed is not kept, so there is nothing to move.",
     .example = "model.num_moe_experts=4 model.recompute_granularity=selective "
                "model.recompute_modules=[moe] model.fine_grained_activation_offloading=true "
                "model.offload_modules=[moe_act]",
     .judge = judge_recomputed},
    {.id = "TC-58e",
     .when = "fused_group_mlp offloaded without the op fuser, or beside expert_fc1 or moe_act",
     .then = "refused",
     .why = "The fused feed-forward has one input; its parts are not there to be moved.",
     .example = "model.num_moe_experts=4 model.fine_grained_activation_offloading=true "
                "model.offload_modules=[fused_group_mlp]",
     .judge = judge_fused},
    {.id = "TC-58f",
     .when = "model.activation_offload_fraction outside 0 to 1",
     .then = "refused",
     .why = "It is a share.",
     .example = "model.fine_grained_activation_offloading=true model.offload_modules=[core_attn] "
                "model.activation_offload_fraction=1.5",
     .judge = judge_fraction},
    {.id = "W125",
     .kind = Kind::Warning,
     .when = "fine-grained offload with model.activation_offload_fraction = 0",
     .then = "warned: nothing is moved",
     .why = "It is the largest share of the layers whose modules may be offloaded, whatever "
            "runtime.offload_layers_share says.",
     .example = "model.fine_grained_activation_offloading=true model.offload_modules=[core_attn] "
                "model.activation_offload_fraction=0",
     .judge = judge_no_share},
    {.id = "W98",
     .kind = Kind::Warning,
     .when = "offloaded: experts of a model without any; what is recomputed; core_attn behind a "
             "norm over several ranks",
     .then = "warned: it stays, or is recomputed",
     .why = "The memory that was hoped for is not saved, or is saved once and not twice.",
     .example = "model.fine_grained_activation_offloading=true model.offload_modules=[moe_act]",
     .judge = judge_idle_offloads},
    {.id = "W40",
     .kind = Kind::Warning,
     .when = "optimizer.optimizer_cpu_offload with a share of 0",
     .then = "warned",
     .why = "The share is 0 unless it is set, and then the switch alone moves nothing.",
     .example = "optimizer.optimizer_cpu_offload=true",
     .judge = judge_optimizer_share},
    {.id = "W116",
     .kind = Kind::Mended,
     .when = "optimizer.optimizer_cpu_offload with checkpoint.async_save",
     .then = "checkpoint.async_save = false",
     .why = "A save beside the run needs a copy of the state in host memory, and the state is "
            "there because there is room for it once.",
     .example = "optimizer.optimizer_cpu_offload=true optimizer.optimizer_offload_fraction=1 "
                "checkpoint.save=x checkpoint.async_save=true",
     .judge = judge_save_of_offloaded},
};

}  // namespace

std::span<const Rule> offload_rules() { return kOffloadRules; }

}  // namespace weft::rules
