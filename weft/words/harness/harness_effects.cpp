#include "weft/words/harness/harness_effects.h"

#include <algorithm>
#include <ranges>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/harness/flex_effect.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

void overlap_experts(const Asked& asked, Ledger& ledger) {
  if (asked.text == "false") return;  // it only switches on; finish_effects() reports that
  ledger.set(asked, kOverlap, "true");
  ledger.imply(asked,
               "H1",
               "comm_overlap.delay_wgrad_compute",
               "true",
               "the flag asks for delayed weight gradients too");
  ledger.imply(asked,
               "H1",
               "model.moe_shared_expert_overlap",
               "false",
               "shared experts cannot overlap beside expert-parallel overlap");
}

void set_tensor_parallel(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.tensor_model_parallel_size", asked.text);
  const bool several = base::parse_integer(asked.text).value_or(1) > 1;
  ledger.imply(asked,
               "H3",
               "model.sequence_parallel",
               several ? "true" : "false",
               "sequence parallelism is on exactly where tp > 1");
}

// -1 keeps the recipe's value.
void set_unless_kept(const Asked& asked, std::string_view key, Ledger& ledger) {
  if (asked.text != "-1") ledger.set(asked, key, asked.text);
}

// Sets `dense` dense layers, then MoE layers.
void set_pattern(const Asked& asked, std::int64_t dense, std::int64_t layers, Ledger& ledger) {
  if (layers < 1 || layers > static_cast<std::int64_t>(kLongestList)) return;
  if (dense < 0 || dense > layers) {
    return ledger.complain(text("{}: {} dense layers of model.num_layers = {}: use 0 to {}",
                                place_text(asked),
                                dense,
                                layers,
                                layers));
  }
  std::vector<int> pattern(static_cast<std::size_t>(layers), 1);
  std::fill_n(pattern.begin(), dense, 0);
  ledger.imply(asked,
               "H12",
               "model.moe_layer_freq",
               text("[{}]", fmt::join(pattern, ",")),
               text("{} dense layers before {} MoE layers", dense, layers - dense));
}

void set_layers(const Asked& asked, Ledger& ledger) {
  const std::vector<std::int64_t> pattern = ledger.config().model.moe_layer_freq;
  ledger.set(asked, "model.num_layers", asked.text);
  if (pattern.size() <= 1) return;  // every n-th layer: valid for any number of layers
  set_pattern(asked, std::ranges::count(pattern, 0), ledger.config().model.num_layers, ledger);
}

void recompute_layers(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.recompute_num_layers", asked.text);
  ledger.imply(asked, "H4", "model.recompute_granularity", "full", "whole layers are run again");
  ledger.imply(asked, "H4", "model.recompute_method", "block", "the first layers of each stage");
}

void recompute_modules(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.recompute_modules", asked.text);
  ledger.imply(asked, "H4", "model.recompute_granularity", "selective", "modules are run again");
}

void offload_layers(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.cpu_offloading_num_layers", asked.text);
  ledger.imply(asked, "H5", "model.cpu_offloading", "true", "layers go to host memory");
  ledger.imply(asked, "H5", "model.cpu_offloading_weights", "false", "their activations alone");
}

void set_graph_impl(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.cuda_graph_impl", asked.text);
  if (asked.text == "none") return;
  for (const char* key : {"rng.te_rng_tracker", "model.use_te_rng_tracker"}) {
    ledger.imply(asked, "H6", key, "true", "graphs need a random state that they can capture");
  }
}

void set_graph_scope(const Asked& asked, const Config& last, Ledger& ledger) {
  const bool whole = asked.text.find("full_iteration") != std::string::npos;
  if (whole && asked.text != "[full_iteration]") {
    ledger.complain(
        text("{}: full_iteration captures everything: give it alone", place_text(asked)));
  }
  if (whole && last.model.cuda_graph_impl == CudaGraphImpl::TransformerEngine) {
    ledger.complain(
        text("{}: full_iteration is not for model.cuda_graph_impl=transformer_engine, which "
             "captures parts of layers: use --cuda_graph_impl local, or other scopes",
             place_text(asked)));
  }
  // The flag replaces the recipe's captured parts, under the new and the old key.
  ledger.set(asked, "model.cuda_graph_modules", asked.text);
  ledger.set(asked, "model.cuda_graph_scope", "[]");
}

void drop_tokens(const Asked& asked, Ledger& ledger) {
  const bool drops = asked.text == "true";
  const char* why = drops ? "an expert takes as many rows as the mean, dropped and padded"
                          : "no row is dropped, and routing is balanced by force";
  ledger.set(asked, "model.moe_expert_capacity_factor", drops ? "1.0" : "null");
  ledger.imply(asked, "H7", "model.moe_pad_expert_input_to_capacity", asked.text, why);
  ledger.imply(asked, "H7", "model.moe_router_force_load_balancing", drops ? "false" : "true", why);
}

void shard_fully(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "ddp.use_megatron_fsdp", asked.text);
  if (asked.text == "false") return;
  ledger.imply(asked,
               "H8",
               "ddp.data_parallel_sharding_strategy",
               "optim_grads_params",
               "parameters, gradients and state are all sharded");
  ledger.imply(asked, "H8", "model.gradient_accumulation_fusion", "true", "as sharding wants");
  ledger.imply(asked,
               "H8",
               "ddp.average_in_collective",
               "false",
               "sharded sums are divided before");
  ledger.imply(asked, "H8", "checkpoint.load", "", "sharded runs start anew");
  if (!ledger.config().comm_overlap.defer_embedding_wgrad_compute.value_or(false)) return;
  ledger.mend(asked,
              "H8",
              "comm_overlap.defer_embedding_wgrad_compute",
              "false",
              "deferred embedding weight gradients do not go with full sharding",
              "leave one of them out");
}

void register_buffers(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "ddp.nccl_ub", asked.text);
  if (asked.text == "false") return;
  ledger.imply(asked,
               "H9",
               "ddp.average_in_collective",
               "false",
               "registered buffers sum, and do not average");
}

void be_deterministic(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "model.deterministic_mode", "true");
  const char* why = "it may change bits from run to run";
  ledger.imply(asked, "H10", "model.cross_entropy_loss_fusion", "false", why);
  ledger.imply(asked, "H10", "comm_overlap.tp_comm_overlap", "false", why);
}

// bf16 as the base dtype; fp8 and fp4 apply to products.
void set_compute_dtype(const Asked& asked, Ledger& ledger) {
  struct Dtype {
    std::string_view name, fp8, recipe, fp4;
  };
  constexpr Dtype kDtypes[] = {{"bf16", "null", "", "null"},
                               {"fp8_cs", "hybrid", "tensorwise", "null"},
                               {"fp8_ds", "hybrid", "delayed", "null"},
                               {"fp8_mx", "e4m3", "mxfp8", "null"},
                               {"fp8_sc", "e4m3", "blockwise", "null"},
                               {"nvfp4", "null", "", "e2m1"}};
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name != asked.text) continue;
    ledger.set(asked, "model.bf16", "true");
    ledger.set(asked, "model.params_dtype", "bf16");
    ledger.set(asked, "model.fp8", dtype.fp8);
    if (!dtype.recipe.empty()) ledger.set(asked, "model.fp8_recipe", dtype.recipe);
    ledger.set(asked, "model.fp4", dtype.fp4);
  }
}

// Precision names of Megatron Bridge.
void set_mixed_precision(const Asked& asked, Ledger& ledger) {
  struct Name {
    std::string_view bridge, dtype;
  };
  constexpr Name kPrecisions[] = {{"bf16_mixed", "bf16"},
                                  {"bf16_with_fp8_current_scaling_mixed", "fp8_cs"},
                                  {"bf16_with_fp8_delayed_scaling_mixed", "fp8_ds"},
                                  {"bf16_with_fp8_subchannel_scaling_mixed", "fp8_sc"},
                                  {"bf16_with_mxfp8_mixed", "fp8_mx"},
                                  {"bf16_with_nvfp4_mixed", "nvfp4"}};
  std::string name = asked.text;
  std::ranges::replace(name, '-', '_');
  if (name == "null") return;
  if (name == "fp16_mixed") {
    ledger.set(asked, "model.fp16", "true");
    return ledger.set(asked, "model.params_dtype", "fp16");
  }
  const auto known = std::ranges::find(kPrecisions, name, &Name::bridge);
  if (known == std::end(kPrecisions)) {
    return ledger.complain(
        text("{}: it is one of {}, fp16_mixed",
             place_text(asked),
             fmt::join(kPrecisions | std::views::transform(&Name::bridge), ", ")));
  }
  Asked dtype = asked;
  dtype.text = known->dtype;
  set_compute_dtype(dtype, ledger);
}

void set_positions(const Asked& asked, Ledger& ledger) {
  if (asked.text == "yarn") {
    ledger.set(asked, "model.position_embedding_type", "rope");
    return ledger.set(asked, "model.rope_type", "yarn");
  }
  if (asked.text == "mrope" || asked.text == "relative") {
    return ledger.leave_out(asked, "positions are rotary, learned or none");
  }
  ledger.set(asked, "model.position_embedding_type", asked.text);
}

void set_data(const Asked& asked, Ledger& ledger) {
  if (asked.text == "mock") return ledger.set(asked, "dataset.kind", "mock");
  ledger.leave_out(
      asked,
      "Weft reads mock, text and indexed data: write --data mock, or dataset.kind=text "
      "or indexed with dataset.path");
}

void set_data_paths(const Asked& asked, Ledger& ledger) {
  ledger.set(asked, "dataset.path", asked.text);
  ledger.set(asked, "dataset.kind", "indexed");
}

void set_timeout(const Asked& asked, Ledger& ledger) {
  const std::optional<std::int64_t> minutes = base::parse_integer(asked.text);
  if (!minutes) return ledger.complain(text("{}: it takes an integer", place_text(asked)));
  ledger.set(asked, "runtime.timeout_seconds", text("{}", static_cast<double>(*minutes) * 60));
}

void set_layers_per_chunk(const Asked& asked, const Config& last, Ledger& ledger) {
  const ModelConfig& model = last.model;
  const std::int64_t pp = model.pipeline_model_parallel_size;
  // Embedding and loss may each count as a layer.
  const std::int64_t layers = model.num_layers +
                              (model.account_for_embedding_in_pipeline_split ? 1 : 0) +
                              (model.account_for_loss_in_pipeline_split ? 1 : 0);
  const std::int64_t each = base::parse_integer(asked.text).value_or(0);
  if (pp == 1) {
    return ledger.complain(
        text("{}: model.pipeline_model_parallel_size = 1, and without a pipeline there are no "
             "virtual stages: leave the flag out, or use 2 or more pipeline ranks",
             place_text(asked)));
  }
  const bool whole = each > 0 && pp > 0 && layers % pp == 0 && layers / pp % each == 0;
  if (!whole) {
    return ledger.complain(
        text("{}: model.num_layers = {}{} over model.pipeline_model_parallel_size "
             "= {} does not give chunks of {}: use a divisor of the layers of a "
             "pipeline rank",
             place_text(asked),
             model.num_layers,
             layers > model.num_layers
                 ? text(" and {} for embedding and loss", layers - model.num_layers)
                 : "",
             pp,
             shown(asked.text)));
  }
  ledger.set(asked, "model.virtual_pipeline_model_parallel_size", text("{}", layers / pp / each));
}

}  // namespace

void apply_effect(const Asked& asked, const Config& last, Ledger& ledger) {
  CHECK(asked.effect.has_value(), "{} has no effect", asked.typed);
  switch (*asked.effect) {
    case Effect::ExpertOverlap:
      return overlap_experts(asked, ledger);
    case Effect::FlexBackend:
      return apply_flex_backend(asked, last, ledger);
    case Effect::TensorParallel:
      return set_tensor_parallel(asked, ledger);
    case Effect::VirtualPipeline:
      return set_unless_kept(asked, "model.virtual_pipeline_model_parallel_size", ledger);
    case Effect::ExpertTensor:
      if (asked.text != "null") ledger.set(asked, "model.expert_tensor_parallel_size", asked.text);
      return;
    case Effect::Layers:
      return set_layers(asked, ledger);
    case Effect::DenseLayers:
      return set_pattern(asked,
                         base::parse_integer(asked.text).value_or(-1),
                         last.model.num_layers,
                         ledger);
    case Effect::RecomputeLayers:
      return recompute_layers(asked, ledger);
    case Effect::RecomputeModules:
      return recompute_modules(asked, ledger);
    case Effect::OffloadLayers:
      return offload_layers(asked, ledger);
    case Effect::GraphImpl:
      return set_graph_impl(asked, ledger);
    case Effect::GraphScope:
      return set_graph_scope(asked, last, ledger);
    case Effect::TokenDrop:
      return drop_tokens(asked, ledger);
    case Effect::FullySharded:
      return shard_fully(asked, ledger);
    case Effect::RegisteredBuffers:
      return register_buffers(asked, ledger);
    case Effect::Deterministic:
      return be_deterministic(asked, ledger);
    case Effect::ComputeDtype:
      return set_compute_dtype(asked, ledger);
    case Effect::Timeout:
      return set_timeout(asked, ledger);
    case Effect::Data:
      return set_data(asked, ledger);
    case Effect::DataPaths:
      return set_data_paths(asked, ledger);
    case Effect::LayersPerChunk:
      return set_layers_per_chunk(asked, last, ledger);
    case Effect::Positions:
      return set_positions(asked, ledger);
    case Effect::MixedPrecision:
      return set_mixed_precision(asked, ledger);
    case Effect::WeightDecay:
    case Effect::Unmodelled:
      return;  // see finish_megatron()
    case Effect::MegatronData:
      break;  // read as keys
  }
  UNREACHABLE("{}", static_cast<int>(*asked.effect));
}

}  // namespace weft::words
