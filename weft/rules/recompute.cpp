// Recomputation of parts of the forward.
#include <algorithm>

#include "weft/derive/context_sharing.h"
#include "weft/derive/pipeline.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool is_selective(const ModelConfig& model) {
  return model.recompute_granularity == RecomputeGranularity::Selective;
}

// Scripts write 0 for no recomputation.
void judge_no_layers(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.recompute_num_layers != 0) return;
  const std::string why = "model.recompute_num_layers = 0 runs no layer again";
  const bool is_block = model.recompute_granularity == RecomputeGranularity::Full &&
                        model.recompute_method == RecomputeMethod::Block;
  judge.set("model.recompute_num_layers", "null", why);
  if (!is_block) return;
  judge.set("model.recompute_granularity", "null", why);
  judge.set("model.recompute_method", "null", why);
}

void judge_full(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.recompute_granularity != RecomputeGranularity::Full) return;
  if (!model.recompute_method) {
    judge.report("model.recompute_method",
                 "model.recompute_granularity = full without model.recompute_method",
                 "set model.recompute_method=uniform or block");
  }
  if (!model.recompute_num_layers) {
    judge.report("model.recompute_num_layers",
                 "model.recompute_granularity = full without model.recompute_num_layers",
                 "set model.recompute_num_layers");
  }
}

void judge_selective_layers(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_selective(model) || !model.recompute_num_layers) return;
  judge.report("model.recompute_num_layers",
               text("model.recompute_granularity = selective with model.recompute_num_layers = {}: "
                    "modules are chosen in all layers",
                    *model.recompute_num_layers),
               "leave model.recompute_num_layers out, or set model.recompute_granularity=full");
}

void judge_default_modules(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_selective(model) || model.recompute_modules) return;
  judge.set("model.recompute_modules",
            "[core_attn]",
            "model.recompute_granularity = selective and no modules are named");
}

void judge_absent_modules(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto check = [&](RecomputeModule module, bool exists, const char* needs) {
    if (exists || !recomputes(model, module)) return;
    judge.report("model.recompute_modules",
                 text("{} is to be recomputed, which needs {}", word(module), needs),
                 text("set it, or take {} out", word(module)));
  };
  check(RecomputeModule::MoeAct, model.moe_grouped_gemm, "model.moe_grouped_gemm");
  check(RecomputeModule::MlaUpProj, model.multi_latent_attention, "model.multi_latent_attention");
  check(RecomputeModule::GdnNormOut,
        model.linear_attention_freq.has_value(),
        "model.linear_attention_freq");
}

void judge_idle_modules(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto check = [&](RecomputeModule module, bool exists, const std::string& why) {
    if (exists || !recomputes(model, module)) return;
    judge.report("model.recompute_modules",
                 text("{} is to be recomputed, and the model has none: {}", word(module), why),
                 text("take {} out of model.recompute_modules", word(module)));
  };
  const std::string dense = "model.num_moe_experts = null";
  check(RecomputeModule::Moe, model.experts() > 0, dense);
  check(RecomputeModule::MoeAct, model.experts() > 0, dense);
  check(RecomputeModule::SharedExperts,
        model.experts() > 0 && model.moe_shared_expert_intermediate_size,
        model.experts() > 0 ? "model.moe_shared_expert_intermediate_size = null" : dense);
  check(RecomputeModule::Mlp,
        !every_layer_is_moe(judge),
        text("all {} layers are MoE", model.num_layers));
}

void judge_no_modules_named(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_selective(model) || !model.recompute_modules || !model.recompute_modules->empty()) return;
  judge.report("model.recompute_modules",
               "model.recompute_granularity = selective with model.recompute_modules = []: nothing "
               "runs again, and no memory is saved",
               "name modules, or leave model.recompute_granularity out");
}

void judge_number_of_layers(Judge& judge) {
  const ModelConfig& model = judge.model();
  const bool is_counted =
      model.recompute_granularity == RecomputeGranularity::Full && model.recompute_num_layers;
  if (!is_counted || !judge.sound({"model.recompute_num_layers",
                                   "model.num_layers",
                                   "model.pipeline_model_parallel_size",
                                   "model.virtual_pipeline_model_parallel_size"})) {
    return;
  }
  std::int64_t most = 0;
  for (const derive::Stage& stage : derive::stages_of(model).all) {
    most = std::max<std::int64_t>(most, stage.layers);
  }
  if (most == 0 || *model.recompute_num_layers <= most) return;
  const bool is_block = model.recompute_method == RecomputeMethod::Block;
  judge.report("model.recompute_num_layers",
               text("model.recompute_num_layers = {}, and no stage has more than {} layers: {}",
                    *model.recompute_num_layers,
                    most,
                    is_block ? "all of them run again" : "each stage keeps one input"),
               text("use a number from 1 to {}", most));
}

void judge_core_attention(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!recomputes(model, RecomputeModule::CoreAttn)) return;
  judge.report("model.recompute_modules",
               "core_attn is recomputed: a fused attention keeps no scores, so that attention runs "
               "twice and its output alone is saved",
               text("compare with {}: `weft memory` counts what each saves and costs",
                    model.multi_latent_attention ? "mla_up_proj"
                    : model.experts() > 0        ? "moe_act or layernorm"
                                                 : "layernorm"));
}

void judge_ring(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!recomputes(model, RecomputeModule::CoreAttn) || !derive::passes_keys_on(model)) return;
  judge.report("model.recompute_modules",
               text("core_attn is recomputed with keys that travel around {} ranks: one step after "
                    "the other they are two blocks, and for attention that runs again they wait "
                    "together until its gradients have read them",
                    model.context_parallel_size),
               "set model.cp_comm_type=a2a, or take core_attn out of model.recompute_modules");
}

void judge_distributed(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.distribute_saved_activations || !model.sequence_parallel) return;
  judge.report("model.distribute_saved_activations",
               "model.distribute_saved_activations with model.sequence_parallel, under which "
               "tensor-parallel ranks share them already",
               "set model.distribute_saved_activations=false");
}

constexpr Rule kRecomputeRules[] = {
    {.id = "W145",
     .kind = Kind::Automatic,
     .when = "model.recompute_num_layers = 0",
     .then = "null; with recompute_granularity = full and recompute_method = block these too",
     .why = "Megatron runs no layer again then.",
     .example = "model.recompute_granularity=full model.recompute_method=block "
                "model.recompute_num_layers=0",
     .judge = judge_no_layers},
    {.id = "TC-49",
     .when = "model.recompute_granularity = full without a method or a number of layers",
     .then = "refused",
     .why = "Full recomputation keeps the input of every n-th layer (uniform), or recomputes the "
            "first n of a stage (block).",
     .example = "model.recompute_granularity=full model.recompute_method=uniform",
     .judge = judge_full},
    {.id = "TC-50",
     .when = "model.recompute_granularity = selective with model.recompute_num_layers",
     .then = "refused",
     .why = "Selective recomputation chooses modules, in every layer.",
     .example = "model.recompute_granularity=selective model.recompute_modules=[mlp] "
                "model.recompute_num_layers=1",
     .judge = judge_selective_layers},
    {.id = "TC-51",
     .kind = Kind::Automatic,
     .when = "model.recompute_granularity = selective and model.recompute_modules is null",
     .then = "model.recompute_modules := [core_attn]",
     .why = "Megatron recomputes core attention in silence where no modules are named; [] "
            "names none.",
     .example = "model.recompute_granularity=selective",
     .judge = judge_default_modules},
    {.id = "TC-53",
     .when = "moe_act recomputed without grouped products, mla_up_proj without MLA, gdn_norm_out "
             "without gated delta nets",
     .then = "refused",
     .why = "The model does not have the module.",
     .example = "model.recompute_granularity=selective model.recompute_modules=[mla_up_proj]",
     .judge = judge_absent_modules},
    {.id = "W72",
     .kind = Kind::Warning,
     .when = "moe or moe_act recomputed without experts, shared_experts without a shared expert, "
             "mlp where every layer is MoE",
     .then = "warned: nothing of the kind runs again",
     .why = "Megatron takes the word and recomputes nothing, and the memory that was hoped "
            "for is not saved.",
     .example = "model.recompute_granularity=selective model.recompute_modules=[shared_experts]",
     .judge = judge_idle_modules},
    {.id = "W123",
     .kind = Kind::Warning,
     .when = "model.recompute_granularity = selective with model.recompute_modules = []",
     .then = "warned: nothing runs again",
     .why = "An empty list names no modules, where null names core_attn (TC-51).",
     .example = "model.recompute_granularity=selective model.recompute_modules=[]",
     .judge = judge_no_modules_named},
    {.id = "W124",
     .kind = Kind::Warning,
     .when = "model.recompute_granularity = full with more model.recompute_num_layers than a stage "
             "has",
     .then = "warned: all of them are meant",
     .why = "The number is of one stage (a chunk of a virtual pipeline). One that is larger than "
            "every stage often comes from a model with more layers.",
     .example = "model.recompute_granularity=full model.recompute_method=block "
                "model.recompute_num_layers=9",
     .judge = judge_number_of_layers},
    {.id = "TC-54",
     .kind = Kind::Warning,
     .when = "core_attn recomputed",
     .then = "warned",
     .why = "Fused attention recomputes its scores by itself, and what is left to save is its "
            "output. Megatron keeps that for the projection anyway (Moonlight-16B, 8 H100: 4 MB "
            "less of 36.6 GB, and a step 3.9% longer); Weft lets it go, so that `weft memory` may "
            "list core_attn, with its price.",
     .example = "model.recompute_granularity=selective model.recompute_modules=[core_attn]",
     .judge = judge_core_attention},
    {.id = "W97",
     .kind = Kind::Warning,
     .when = "core_attn recomputed where keys travel around a ring (p2p, a2a+p2p)",
     .then = "warned",
     .why = "Keys are sent again once, for attention and its gradients. So one layer at a time has "
            "the keys of all ranks of the ring, as with all_gather; with a2a there are none.",
     .example = "model.context_parallel_size=2 model.recompute_granularity=selective "
                "model.recompute_modules=[core_attn]",
     .judge = judge_ring},
    {.id = "TC-56",
     .when = "model.distribute_saved_activations with model.sequence_parallel",
     .then = "refused",
     .why = "Under sequence parallelism every rank keeps only its own tokens as it is.",
     .example = "model.tensor_model_parallel_size=2 model.sequence_parallel=true "
                "model.distribute_saved_activations=true",
     .judge = judge_distributed},
};

}  // namespace

std::span<const Rule> recompute_rules() { return kRecomputeRules; }

}  // namespace weft::rules
