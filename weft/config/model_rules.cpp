#include <algorithm>

#include "weft/config/derived.h"
#include "weft/config/findings.h"

namespace weft::config {
namespace {

// Far below where 64-bit arithmetic on the counts would overflow.
constexpr double kMostParameters = 1e15;
constexpr std::int64_t kWidestProjection = 1 << 24;

void check_heads(const ModelConfig& model, Findings& findings) {
  if (!findings.sound({"model.hidden_size",
                       "model.num_attention_heads",
                       "model.num_query_groups",
                       "model.kv_channels"})) {
    return;
  }
  if (model.num_attention_heads % model.query_groups() != 0) {
    findings.complain(
        "model.num_attention_heads = {} is not divisible by model.num_query_groups = {}: use a "
        "number of groups that divides the heads",
        model.num_attention_heads,
        model.query_groups());
  }
  if (!model.kv_channels && model.hidden_size % model.num_attention_heads != 0) {
    findings.complain(
        "model.hidden_size = {} is not divisible by model.num_attention_heads = {}: set "
        "model.kv_channels, or sizes that divide",
        model.hidden_size,
        model.num_attention_heads);
    return;
  }
  if (model.head_dim() % 2 != 0 || model.head_dim() == 0) {
    findings.complain(
        "the width of one head is {}, but the rotary embedding turns pairs: use an even "
        "model.kv_channels",
        model.head_dim());
  }
  if (model.query_width() > kWidestProjection) {
    findings.complain("model.num_attention_heads = {} of width {} make {} channels: use at most {}",
                      model.num_attention_heads,
                      model.head_dim(),
                      model.query_width(),
                      kWidestProjection);
  }
}

void check_layer_kinds(const ModelConfig& model, Findings& findings) {
  if (!findings.sound({"model.num_layers", "model.moe_layer_freq"})) return;
  const auto& kinds = model.moe_layer_freq;
  const auto layers = static_cast<std::size_t>(model.num_layers);
  if (kinds.size() == 1 && (kinds.front() >= 1 || layers == 1)) return;
  if (kinds.size() != layers) {
    findings.complain(
        "model.moe_layer_freq has {} entries{} for model.num_layers = {}: give one period of at "
        "least 1, or one 0 or 1 for each layer",
        kinds.size(),
        kinds.size() == 1 ? base::text(" ({})", kinds.front()) : "",
        layers);
  } else if (const auto odd = std::find_if(kinds.begin(),
                                           kinds.end(),
                                           [](std::int64_t kind) { return kind > 1; });
             odd != kinds.end()) {
    findings.complain("model.moe_layer_freq lists {} for layer {}: use 0 (dense) or 1 (MoE)",
                      *odd,
                      odd - kinds.begin());
  }
}

void check_router(const ModelConfig& model, Findings& findings) {
  if (!findings.sound({"model.num_moe_experts", "model.moe_router_topk"})) return;
  if (model.num_moe_experts == 0) {
    if (model.expert_model_parallel_size > 1) {
      findings.complain(
          "model.expert_model_parallel_size = {} without experts: set it to 1, or set "
          "model.num_moe_experts",
          model.expert_model_parallel_size);
    }
    return;
  }
  if (model.moe_router_topk > model.num_moe_experts) {
    findings.complain("model.moe_router_topk = {} of model.num_moe_experts = {}: use at most {}",
                      model.moe_router_topk,
                      model.num_moe_experts,
                      model.num_moe_experts);
  }
  if (model.moe_router_topk == 1 && !model.moe_router_pre_softmax) {
    findings.complain(
        "model.moe_router_topk = 1 with softmax after the selection gives every token the weight "
        "1, so the router would not learn: set model.moe_router_pre_softmax=true");
  }
}

void check_parameters(const ModelConfig& model, Findings& findings) {
  if (!findings.sound_section("model.")) return;
  if (const double weights = most_parameters(model); weights > kMostParameters) {
    findings.complain(
        "the model could have {:.3g} parameters: lower model.num_layers, the widths or "
        "model.num_moe_experts until it has at most {:.3g}",
        weights,
        kMostParameters);
  }
}

}  // namespace

void check_model(const Config& config, Findings& findings) {
  check_heads(config.model, findings);
  check_layer_kinds(config.model, findings);
  check_router(config.model, findings);
  check_parameters(config.model, findings);
}

}  // namespace weft::config
