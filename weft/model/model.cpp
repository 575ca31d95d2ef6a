#include "weft/model/model.h"

#include "weft/base/text.h"
#include "weft/derive/layer_kind.h"

namespace weft::model {
namespace {

// Collects weights or gradients by name.
template <typename Pick>
LayerWeights collect_layer(const config::ModelConfig& config, int index, const Pick& pick) {
  const auto of_layer = [&](std::string_view name) {
    return pick(base::text("layers.{}.{}", index, name));
  };
  LayerWeights layer;
  if (config.multi_latent_attention) {
    layer.latent_attention = {.norm_D = of_layer("attention.norm.weight"),
                              .down_CD = of_layer("attention.down.weight"),
                              .kv_norm_R = of_layer("attention.kv_norm.weight"),
                              .kv_up_UR = of_layer("attention.kv_up.weight"),
                              .proj_DV = of_layer("attention.proj.weight")};
    if (config.q_lora_rank) {
      layer.latent_attention.q_norm_L = of_layer("attention.q_norm.weight");
      layer.latent_attention.q_up_QL = of_layer("attention.q_up.weight");
    }
  } else {
    layer.attention.norm_D = of_layer("attention.norm.weight");
    layer.attention.qkv_CD = of_layer("attention.qkv.weight");
    layer.attention.proj_DQ = of_layer("attention.proj.weight");
    if (config.qk_layernorm != config::QkNorm::None) {
      layer.attention.q_norm = of_layer("attention.q_norm.weight");
      layer.attention.k_norm = of_layer("attention.k_norm.weight");
    }
  }
  if (config.is_moe_layer(index)) {
    layer.route = {.norm_D = of_layer("route.norm.weight"),
                   .router_ED = of_layer("route.router.weight")};
    if (config.moe_router_enable_expert_bias) layer.route.bias_E = of_layer("route.bias");
    if (derive::shared_expert_width(config) > 0) {
      layer.shared.fc1_FD = of_layer("shared.fc1.weight");
      layer.shared.fc2_DF = of_layer("shared.fc2.weight");
      if (config.moe_shared_expert_gate) layer.shared.gate_1D = of_layer("shared.gate.weight");
    }
    layer.experts = {.fc1_LFD = of_layer("experts.fc1.weight"),
                     .fc2_LDF = of_layer("experts.fc2.weight")};
  } else {
    layer.mlp = {.norm_D = of_layer("mlp.norm.weight"),
                 .fc1_FD = of_layer("mlp.fc1.weight"),
                 .fc2_DF = of_layer("mlp.fc2.weight")};
  }
  return layer;
}

template <typename Pick>
Weights collect(const config::ModelConfig& config, const Holding& holding, const Pick& pick) {
  Weights all;
  if (holding.embedding) all.embedding_VD = pick("embedding.weight");
  all.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (const int layer : holding.layers) {
    all.layers[static_cast<std::size_t>(layer)] = collect_layer(config, layer, pick);
  }
  if (!holding.head) return all;
  all.head.norm_D = pick("head.norm.weight");
  const bool tied = config.share_embeddings_and_output_weights;
  all.head.head_VD = pick(tied ? "embedding.weight" : "head.weight");
  return all;
}

}  // namespace

Weights weights_of(const Parameters& parameters, const config::ModelConfig& config) {
  return collect(config, parameters.holding(), [&](std::string_view name) {
    return parameters.find(name).weight;
  });
}

Weights gradients_of(const Parameters& parameters, const config::ModelConfig& config) {
  Weights all = collect(config, parameters.holding(), [&](std::string_view name) {
    return parameters.find(name).gradient;
  });
  // On one rank, the two parts of a tied table's gradient are summed separately; so is the gradient
  // of a copied table.
  if (parameters.tied_head_gradient().defined()) {
    all.head.head_VD = parameters.tied_head_gradient();
  }
  return all;
}

}  // namespace weft::model
