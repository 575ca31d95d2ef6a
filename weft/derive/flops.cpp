#include "weft/derive/flops.h"

#include "weft/base/casts.h"
#include "weft/derive/layer_kind.h"

namespace weft::derive {

using namespace config;
namespace {

// Functions count multiply-adds of one token's forward. Each is two operations, and backward costs
// twice the forward: a factor of 6 in total.
constexpr double kForwardOperations = 2, kOperations = 3 * kForwardOperations;

using base::number;

// Scores and values over half the sequence each: q * S together. A window of W tokens is full
// except at the beginning.
double grouped_attention_flops(const ModelConfig& model, std::int64_t layer) {
  const double h = number(model.hidden_size), seq = number(model.seq_length);
  const double q = number(model.query_width()), kv = number(model.key_width());
  const double gate = model.attention_output_gate ? q : 0;
  double core = q * seq;
  if (is_windowed(model, layer) && *model.window_size < model.seq_length) {
    const double window = number(*model.window_size);
    core = 2 * q * (window - window * (window - 1) / (2 * seq));
  }
  return h * (q + 2 * kv + gate) + q * h + core;
}

double latent_attention_flops(const ModelConfig& model) {
  const double h = number(model.hidden_size), seq = number(model.seq_length);
  const double heads = number(model.num_attention_heads);
  const double rope = number(model.qk_pos_emb_head_dim), value = number(model.v_head_dim);
  const double query = number(model.qk_head_dim) + rope;
  const double compressed = number(model.kv_lora_rank);
  const double queries =
      model.q_lora_rank ? number(*model.q_lora_rank) * (h + heads * query + 1) : h * heads * query;
  const double keys = compressed * (h + heads * (number(model.qk_head_dim) + value) + 1) + h * rope;
  const double core = seq * heads * query / 2 + seq * heads * value / 2;
  return queries + keys + heads * value * h + core;
}

double delta_net_flops(const ModelConfig& model) {
  const double h = number(model.hidden_size), value_heads = number(model.linear_num_value_heads);
  const double key = number(model.linear_num_key_heads) * number(model.linear_key_head_dim);
  const double head = number(model.linear_value_head_dim);
  const double value = value_heads * head;
  return h * (2 * key + 2 * value + 2 * value_heads) +
         number(model.linear_conv_kernel_dim) * (2 * key + value) + value_heads * head * head * 4 +
         h * value;
}

double attention_flops(const ModelConfig& model, std::int64_t layer) {
  switch (attention_of(model, layer)) {
    case AttentionKind::Grouped:
      return grouped_attention_flops(model, layer);
    case AttentionKind::Latent:
      return latent_attention_flops(model);
    case AttentionKind::DeltaNet:
      return delta_net_flops(model);
  }
  return 0;
}

double feed_forward(const ModelConfig& model, std::int64_t layer) {
  const double h = number(model.hidden_size), products = number(model.feed_forward_matrices());
  if (!model.is_moe_layer(layer)) return h * number(model.dense_width()) * products;
  double routed = number(model.expert_width()) * number(model.moe_router_topk) * products;
  if (model.moe_latent_size) {
    const double latent = number(*model.moe_latent_size);
    routed = routed * latent / h + 2 * latent;
  }
  return h * routed;
}

double shared_experts(const ModelConfig& model, std::int64_t layer) {
  if (!model.is_moe_layer(layer)) return 0;
  return number(model.hidden_size) * number(shared_expert_width(model)) *
         number(model.feed_forward_matrices());
}

double layer_products(const ModelConfig& model, std::int64_t layer) {
  return attention_flops(model, layer) + feed_forward(model, layer) + shared_experts(model, layer);
}

}  // namespace

LayerFlops layer_forward_flops(const ModelConfig& model, std::int64_t layer) {
  return {.attention = kForwardOperations * attention_flops(model, layer),
          .feed_forward = kForwardOperations * feed_forward(model, layer),
          .shared_experts = kForwardOperations * shared_experts(model, layer)};
}

double flops_per_token(const ModelConfig& model) {
  const double h = number(model.hidden_size), mtp = number(mtp_layers(model));
  double layers = 0;
  for (std::int64_t i = 0; i < model.num_layers; ++i) layers += layer_products(model, i);
  const double ahead = mtp * (layer_products(model, model.num_layers - 1) + 3 * h + 2 * h * h);
  return kOperations * (layers + ahead + h * number(model.vocab_size) * (mtp + 1));
}

}  // namespace weft::derive
