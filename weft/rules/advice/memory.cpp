// Cost of memory savings: recomputation and offload.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/derived_run.h"
#include "weft/derive/gpu.h"
#include "weft/rules/advice/facts.h"
#include "weft/rules/advice/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Fraction of memory that state may take.
constexpr double kRoomForState = 0.85;

std::optional<Note> selective_first(const Config& config) {
  if (config.model.recompute_granularity != RecomputeGranularity::Full) return {};
  const char* module = config.model.multi_latent_attention ? "mla_up_proj"
                       : config.model.experts() > 0        ? "moe_act"
                                                           : "layernorm";
  return note(
      "model.recompute_granularity",
      "full recomputation runs every forward again, dispatch and combine included",
      text("try model.recompute_granularity=selective model.recompute_modules=[{}] first", module));
}

std::optional<Note> narrow_recompute(const Config& config) {
  const auto& modules = config.model.recompute_modules;
  if (config.model.recompute_granularity != RecomputeGranularity::Selective || !modules) return {};
  if (std::ranges::find(*modules, RecomputeModule::Moe) == modules->end()) return {};
  return note("model.recompute_modules",
              "recomputing the whole moe module runs its dispatch and combine again",
              "try moe_act, then layernorm, and moe only where they do not fit");
}

std::optional<Note> latent_recompute(const Config& config) {
  const auto& modules = config.model.recompute_modules;
  if (config.model.recompute_granularity != RecomputeGranularity::Selective || !modules) return {};
  if (!config.model.multi_latent_attention || modules->empty()) return {};
  if (std::ranges::find(*modules, RecomputeModule::MlaUpProj) != modules->end()) return {};
  return note("model.recompute_modules",
              "with multi-head latent attention the up-projections are the largest saving",
              "add mla_up_proj");
}

std::optional<Note> offload_last(const Config& config) {
  const double fraction = config.optimizer.optimizer_offload_fraction;
  if (!config.optimizer.optimizer_cpu_offload || fraction == 0) return {};  // W40 reports it
  return note(
      "optimizer.optimizer_cpu_offload",
      text("optimizer state in host memory (fraction {}): gradients and weights travel over "
           "the host link in every step",
           fraction),
      "see in `weft memory` whether selective recomputation frees enough for less time, "
      "and try more pipeline stages");
}

std::optional<Note> state_fits(const Config& config) {
  const std::optional<double> gigabytes = derive::gpu_facts(config.hardware).memory_gb;
  if (!gigabytes) return {};
  std::int64_t most = 0;
  for (const derive::DerivedRank& rank : derive::derived_run(config).ranks) {
    most = std::max(most, rank.bytes.total());
  }
  const double needed = static_cast<double>(most) / 1e9;
  if (needed <= kRoomForState * *gigabytes) return {};
  return note(
      "model.expert_model_parallel_size",
      text("weights, gradients and optimizer state take {:.0f} GB a rank, without activations, "
           "and {} has {:.0f}",
           needed,
           word(*config.hardware.gpu),
           *gigabytes),
      "raise model.expert_model_parallel_size or model.pipeline_model_parallel_size, or share "
      "the state (ddp.use_distributed_optimizer)");
}

constexpr Advice kMemoryAdvice[] = {
    {.id = "A19",
     .when = "weights, gradients and optimizer state above 85 % of the GPU's memory",
     .then = "does not fit with its activations",
     .why = "A step keeps activations beside the state; 15 % is little for them.",
     .measured =
         "DeepSeek-V3, PP4 VPP4 EP64, 256 GPUs: 69 GB of state and 131 GB of activations a GPU "
         "before anything is recomputed.",
     .example = "hardware.gpu=h100 model.bf16=true model.hidden_size=8192 model.num_layers=64 "
                "model.num_attention_heads=64 model.num_query_groups=8",
     .judge = state_fits},

    {.id = "A6",
     .when = "full recomputation",
     .then = "selective first",
     .why = "A few modules hold most of the memory; running whole layers again repeats their "
            "communication too.",
     .measured =
         "Full costs about 30 % more compute. DeepSeek-V3: selective saves 42 GB a GPU for under "
         "5 %. Moonlight-16B: none 457 ms, moe_act 466 ms, core_attn 475 ms.",
     .example = "model.recompute_granularity=full model.recompute_method=uniform "
                "model.recompute_num_layers=1",
     .judge = selective_first},
    {.id = "A7",
     .when = "selective recomputation of the whole moe module",
     .then = "narrower first",
     .why = "It is an ordinary checkpoint around dispatch, experts and combine.",
     .measured =
         "Nemotron-3-Nano, 16 H100: moe passes at 64.7 GB and 657 ms where moe_act alone does not "
         "fit; moe + layernorm 678 ms.",
     .example = "model.num_moe_experts=4 model.recompute_granularity=selective "
                "model.recompute_modules=[moe]",
     .judge = narrow_recompute},
    {.id = "A8",
     .when = "multi-head latent attention with selective recomputation, without mla_up_proj",
     .then = "add mla_up_proj",
     .why = "The up-projections unfold what the latent compressed: the largest activations of the "
            "layer, "
            "and cheap to run again.",
     .measured = "DeepSeek-V3: 30.4 of the 42.4 GB that recomputation saves.",
     .example = "model.multi_latent_attention=true model.recompute_granularity=selective "
                "model.recompute_modules=[core_attn]",
     .judge = latent_recompute},
    {.id = "A17",
     .when = "optimizer state offloaded to the host, with a share above 0",
     .then = "compare it with recomputation",
     .why = "Every step moves gradients and weights over the host link, and the host's cores "
            "change the state. How much of a step that is follows from the tokens of a step: "
            "`weft memory` proposes it only where its price is the lowest, or nothing else fits.",
     .measured = "In Megatron, Qwen3-30B-A3B, TP2 PP2 EP4: 996 ms without, 2484 at half, 4189 with "
                 "all (47 -> 32 GB).",
     .example = "optimizer.optimizer_cpu_offload=true optimizer.optimizer_offload_fraction=0.5",
     .judge = offload_last},
};

}  // namespace

std::span<const Advice> memory_advice() { return kMemoryAdvice; }

}  // namespace weft::rules
