#include "weft/derive/blocks.h"

#include <map>

#include "weft/base/check.h"
#include "weft/block/attention.h"
#include "weft/block/delta_net.h"
#include "weft/block/ends.h"
#include "weft/block/experts.h"
#include "weft/block/feed_forward.h"
#include "weft/block/latent_attention.h"
#include "weft/derive/layer_kind.h"

namespace weft::derive {

using config::ModelConfig;

namespace {

block::GroupedHeads grouped_heads(const ModelConfig& model, std::int64_t layer) {
  return {.heads = model.num_attention_heads,
          .groups = model.query_groups(),
          .channels = model.head_dim(),
          .norm = model.qk_layernorm,
          .has_gate = model.attention_output_gate,
          .has_input_bias = model.add_qkv_bias,
          .has_sinks = model.softmax_type == config::SoftmaxType::Learnable,
          .window = is_windowed(model, layer) ? model.window_size : std::nullopt};
}

block::LatentHeads latent_heads(const ModelConfig& model) {
  return {.heads = model.num_attention_heads,
          .query_rank = model.q_lora_rank,
          .rank = model.kv_lora_rank,
          .unturned = model.qk_head_dim,
          .turned = model.qk_pos_emb_head_dim,
          .value = model.v_head_dim};
}

block::DeltaHeads delta_heads(const ModelConfig& model) {
  return {.key_heads = model.linear_num_key_heads,
          .key_channels = model.linear_key_head_dim,
          .value_heads = model.linear_num_value_heads,
          .value_channels = model.linear_value_head_dim,
          .convolution = model.linear_conv_kernel_dim};
}

block::FeedForward feed_forward(const ModelConfig& model, std::int64_t width) {
  return {.width = width, .is_gated = model.gated_linear_unit};
}

block::Block mixer(const ModelConfig& model,
                   std::int64_t layer,
                   const block::AttentionSharing& sharing) {
  const block::Stream stream = stream_of(model);
  switch (attention_of(model, layer)) {
    case AttentionKind::Grouped:
      return block::attention(stream, grouped_heads(model, layer), sharing);
    case AttentionKind::Latent:
      return block::latent_attention(stream, latent_heads(model), sharing);
    case AttentionKind::DeltaNet:
      return block::delta_net(stream, delta_heads(model));
  }
  UNREACHABLE("attention of layer {}", layer);
}

}  // namespace

block::Stream stream_of(const ModelConfig& model) {
  return {.hidden = model.hidden_size,
          .sequence = model.seq_length,
          .norm_weights = model.norm_weights(),
          .has_biases = model.add_bias_linear,
          .element_bytes = model.params_dtype == base::DType::F32 ? 4 : 2,
          .tp = model.tensor_model_parallel_size};
}

block::Vocabulary vocabulary_of(const ModelConfig& model) {
  return {.count = model.vocab_size,
          .padded = model.padded_vocab_size(),
          .positions = model.learned_positions(),
          .is_tied = model.share_embeddings_and_output_weights};
}

std::vector<block::Block> layer_blocks(const ModelConfig& model,
                                       std::int64_t layer,
                                       const block::AttentionSharing& sharing,
                                       const block::Routing& routing) {
  const block::Stream stream = stream_of(model);
  std::vector<block::Block> blocks{mixer(model, layer, sharing)};
  if (!model.is_moe_layer(layer)) {
    blocks.push_back(block::dense_feed_forward(stream, feed_forward(model, model.dense_width())));
    return blocks;
  }
  const block::Experts experts{.count = model.experts(),
                               .chosen = model.moe_router_topk,
                               .local = model.local_experts(),
                               .shards = model.expert_shards(),
                               .each = feed_forward(model, model.expert_width()),
                               .latent = model.moe_latent_size,
                               .has_balance_bias = model.moe_router_enable_expert_bias};
  blocks.push_back(block::route(stream, experts, routing));
  if (const std::int64_t width = shared_expert_width(model); width > 0) {
    blocks.push_back(block::shared_experts(
        stream,
        feed_forward(model, width),
        model.moe_shared_expert_gate ? block::SharedGate::Learned : block::SharedGate::None));
  }
  blocks.push_back(block::experts(stream, experts, routing.dispatch));
  return blocks;
}

block::Block embedding_block(const ModelConfig& model) {
  return block::embedding(stream_of(model), vocabulary_of(model));
}

block::Block head_block(const ModelConfig& model) {
  return block::head(stream_of(model), vocabulary_of(model));
}

block::Block token_ahead_block(const ModelConfig& model) {
  return block::token_ahead(stream_of(model));
}

LayerKind kind_of_layer(const ModelConfig& model, std::int64_t layer) {
  return {.attention = attention_of(model, layer),
          .is_windowed = is_windowed(model, layer),
          .is_moe = model.is_moe_layer(layer)};
}

std::vector<LayerKindCount> layer_kinds(const ModelConfig& model,
                                        std::int64_t first,
                                        std::int64_t count) {
  std::map<LayerKind, LayerKindCount> kinds;
  for (std::int64_t layer = first; layer < first + count; ++layer) {
    ++kinds.try_emplace(kind_of_layer(model, layer), LayerKindCount{layer, 0}).first->second.count;
  }
  std::vector<LayerKindCount> counts;
  for (const auto& [kind, one] : kinds) counts.push_back(one);
  return counts;
}

}  // namespace weft::derive
