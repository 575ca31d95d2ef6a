#include "weft/model/model.h"

#include "weft/base/text.h"
#include "weft/derive/layer_kind.h"

namespace weft::model {
namespace {

// Weights by name, behind a prefix such as "layers.3.", and the formats of their products.
struct Named {
  const Parameters& parameters;
  DType dtype;
  std::string prefix = "";

  Tensor values(std::string_view name) const { return found(name).weight; }
  Weight weight(std::string_view name) const {
    const Parameter& parameter = found(name);
    return {.values = parameter.weight, .gradient = parameter.gradient};
  }
  Product product(std::string_view name) const {
    return {.weight = weight(name), .formats = {.input = dtype, .result = dtype}};
  }
  Product product_in_fp32(std::string_view name) const {
    return {.weight = weight(name), .formats = {.input = dtype, .result = DType::F32}};
  }
  const Parameter& found(std::string_view name) const {
    return parameters.find(base::text("{}{}", prefix, name));
  }
};

LayerWeights layer_of(const Named& named, const config::ModelConfig& config, int index) {
  LayerWeights layer;
  if (config.multi_latent_attention) {
    layer.latent_attention = {.norm_D = named.weight("attention.norm.weight"),
                              .down_CD = named.product("attention.down.weight"),
                              .kv_norm_R = named.weight("attention.kv_norm.weight"),
                              .kv_up_UR = named.product("attention.kv_up.weight"),
                              .proj_DV = named.product("attention.proj.weight")};
    if (config.q_lora_rank) {
      layer.latent_attention.q_norm_L = named.weight("attention.q_norm.weight");
      layer.latent_attention.q_up_QL = named.product("attention.q_up.weight");
    }
  } else {
    layer.attention.norm_D = named.weight("attention.norm.weight");
    layer.attention.qkv_CD = named.product("attention.qkv.weight");
    layer.attention.proj_DQ = named.product("attention.proj.weight");
    if (config.qk_layernorm != config::QkNorm::None) {
      layer.attention.q_norm = named.weight("attention.q_norm.weight");
      layer.attention.k_norm = named.weight("attention.k_norm.weight");
    }
  }
  if (config.is_moe_layer(index)) {
    layer.route = {.norm_D = named.weight("route.norm.weight"),
                   .router_ED = named.product_in_fp32("route.router.weight")};
    if (config.moe_router_enable_expert_bias) layer.route.bias_E = named.values("route.bias");
    if (derive::shared_expert_width(config) > 0) {
      layer.shared.fc1_FD = named.product("shared.fc1.weight");
      layer.shared.fc2_DF = named.product("shared.fc2.weight");
      if (config.moe_shared_expert_gate) {
        layer.shared.gate_1D = named.product_in_fp32("shared.gate.weight");
      }
    }
    layer.experts = {.fc1_LFD = named.product("experts.fc1.weight"),
                     .fc2_LDF = named.product("experts.fc2.weight")};
  } else {
    layer.mlp = {.norm_D = named.weight("mlp.norm.weight"),
                 .fc1_FD = named.product("mlp.fc1.weight"),
                 .fc2_DF = named.product("mlp.fc2.weight")};
  }
  return layer;
}

}  // namespace

Weights weights_of(const Parameters& parameters, const config::ModelConfig& config) {
  const Named named{.parameters = parameters, .dtype = dtype_of(config.params_dtype)};
  const Holding& holding = parameters.holding();
  Weights all;
  if (holding.embedding) all.embedding_VD = named.weight("embedding.weight");
  all.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (const int layer : holding.layers) {
    const Named of_layer{.parameters = parameters,
                         .dtype = named.dtype,
                         .prefix = base::text("layers.{}.", layer)};
    all.layers[static_cast<std::size_t>(layer)] = layer_of(of_layer, config, layer);
  }
  if (!holding.head) return all;
  all.head.norm_D = named.weight("head.norm.weight");
  const bool tied = config.share_embeddings_and_output_weights;
  all.head.head_VD = named.product_in_fp32(tied ? "embedding.weight" : "head.weight");
  // On one rank, the two parts of a tied table's gradient are summed separately; so is the gradient
  // of a copied table.
  if (parameters.tied_head_gradient().defined()) {
    all.head.head_VD.weight.gradient = parameters.tied_head_gradient();
  }
  return all;
}

}  // namespace weft::model
