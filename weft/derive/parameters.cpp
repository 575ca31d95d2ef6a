#include "weft/derive/parameters.h"

#include <algorithm>

#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"

namespace weft::derive {

using namespace config;
namespace {

// A per-head norm is shared by all heads; a norm of the projection has its channels.
void add_query_key_norms(const ModelConfig& model, LayerParameters& to) {
  switch (model.qk_layernorm) {
    case QkNorm::None:
      return;
    case QkNorm::Head:
      to.replicated += 2 * model.norm_weights() * model.head_dim();
      return;
    case QkNorm::Projection:
      to.split += model.norm_weights() * model.query_width();
      to.keys += model.norm_weights() * model.key_width();
      return;
  }
}

LayerParameters grouped_attention(const ModelConfig& model) {
  const std::int64_t h = model.hidden_size, q = model.query_width();
  const std::int64_t queries = q * (model.attention_output_gate ? 2 : 1);
  const std::int64_t keys_values = 2 * model.key_width();
  LayerParameters result{.split = h * queries + q * h, .keys = h * keys_values};
  add_query_key_norms(model, result);
  if (model.add_bias_linear || model.add_qkv_bias) {
    result.split += queries;
    result.keys += keys_values;
  }
  if (model.add_bias_linear) result.replicated += h;
  if (model.softmax_type == SoftmaxType::Learnable) result.split += model.num_attention_heads;
  return result;
}

// Compression of queries, keys and values is whole on every rank, and so are the norms between,
// whatever model.qk_layernorm says. Heads divide the expansions, and uncompressed queries.
// model.add_bias_linear adds a bias to the output projection only.
LayerParameters latent_attention(const ModelConfig& model) {
  const std::int64_t h = model.hidden_size, heads = model.num_attention_heads;
  const std::int64_t query = heads * (model.qk_head_dim + model.qk_pos_emb_head_dim);
  const std::int64_t key_value = heads * (model.qk_head_dim + model.v_head_dim);
  const std::int64_t r = model.kv_lora_rank, q = model.q_lora_rank.value_or(0);
  return {
      .split = (model.q_lora_rank ? q : h) * query + r * key_value + heads * model.v_head_dim * h,
      .replicated = h * (q + r + model.qk_pos_emb_head_dim) + model.norm_weights() * (q + r) +
                    (model.add_bias_linear ? h : 0)};
}

// Projections to queries, keys, values and gate, and to two scalars per value head; the convolution
// over queries, keys and values; the decay and its bias; the norm; the output projection.
LayerParameters delta_net(const ModelConfig& model) {
  const std::int64_t h = model.hidden_size, value_heads = model.linear_num_value_heads;
  const std::int64_t key = model.linear_num_key_heads * model.linear_key_head_dim;
  const std::int64_t value = value_heads * model.linear_value_head_dim;
  return {.split = h * (2 * key + 2 * value + 2 * value_heads) +
                   model.linear_conv_kernel_dim * (2 * key + value) + 2 * value_heads + value * h,
          .replicated = model.linear_value_head_dim};
}

LayerParameters attention(const ModelConfig& model, std::int64_t layer) {
  switch (attention_of(model, layer)) {
    case AttentionKind::Grouped:
      return grouped_attention(model);
    case AttentionKind::Latent:
      return latent_attention(model);
    case AttentionKind::DeltaNet:
      return delta_net(model);
  }
  return {};
}

// Adds a feed-forward that tensor parallelism splits.
void add_feed_forward(const ModelConfig& model, std::int64_t width, LayerParameters& to) {
  to.split += model.feed_forward_matrices() * model.hidden_size * width;
  if (!model.add_bias_linear) return;
  to.split += model.first_products() * width;
  to.replicated += model.hidden_size;
}

void add_experts(const ModelConfig& model, LayerParameters& to) {
  const std::int64_t h = model.hidden_size, experts = model.experts();
  const std::int64_t in = model.moe_latent_size.value_or(h);
  const std::int64_t width = model.expert_width();
  const std::int64_t biases = model.add_bias_linear ? model.first_products() * width + in : 0;
  const std::int64_t each = model.feed_forward_matrices() * in * width + biases;
  to.experts = experts * each;
  to.visited = model.moe_router_topk * each;
  to.replicated += experts * h;
  if (model.add_bias_linear) to.replicated += experts;
  if (model.moe_router_enable_expert_bias) to.untrained += experts;
  if (model.moe_latent_size) to.replicated += 2 * h * in;
  if (const std::int64_t shared = shared_expert_width(model); shared > 0) {
    add_feed_forward(model, shared, to);
    if (model.moe_shared_expert_gate) to.replicated += h;
  }
}

std::int64_t split_between(std::int64_t count, std::int64_t ranks) {
  return (count + ranks - 1) / ranks;
}

}  // namespace

LayerParameters layer_parameters(const ModelConfig& model, std::int64_t layer) {
  LayerParameters result = attention(model, layer);
  result.replicated += 2 * model.norm_weights() * model.hidden_size;
  if (model.is_moe_layer(layer)) {
    add_experts(model, result);
  } else {
    add_feed_forward(model, model.dense_width(), result);
  }
  return result;
}

LayerParameters mtp_layer_parameters(const ModelConfig& model) {
  LayerParameters result = layer_parameters(model, model.num_layers - 1);
  result.split += 2 * model.hidden_size * model.hidden_size;
  result.replicated += 3 * model.norm_weights() * model.hidden_size;
  return result;
}

ParameterCount parameters_of(const ModelConfig& model) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t tables = model.share_embeddings_and_output_weights ? 1 : 2;
  ParameterCount count{.total = (tables * model.vocab_size + model.learned_positions()) * h +
                                model.norm_weights() * h};
  count.active = count.total;
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    const LayerParameters layer = layer_parameters(model, i);
    count.total += layer.total();
    count.active += layer.active();
    count.experts += layer.experts;
  }
  if (const std::int64_t depth = mtp_layers(model); depth > 0) {
    const LayerParameters layer = mtp_layer_parameters(model);
    count.mtp = depth * layer.total();
    count.total += count.mtp;
    count.experts += depth * layer.experts;
  }
  return count;
}

double most_parameters(const ModelConfig& model) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double h = number(model.hidden_size), heads = number(model.num_attention_heads);
  const double head = model.kv_channels ? number(*model.kv_channels) : h / heads;
  const double latent =
      number(model.q_lora_rank.value_or(0)) + number(model.kv_lora_rank) + h +
      heads * number(model.qk_head_dim + model.qk_pos_emb_head_dim + model.v_head_dim);
  const double linear =
      number(model.linear_num_key_heads) * number(model.linear_key_head_dim) +
      number(model.linear_num_value_heads) * (number(model.linear_value_head_dim) + 2);
  const double attention = std::max(
      {6 * heads * head * (h + 1),
       model.multi_latent_attention ? latent * latent : 0.0,
       model.linear_attention_freq ? linear * (3 * h + number(model.linear_conv_kernel_dim) + 3)
                                   : 0.0});
  const double in = std::max(h, number(model.moe_latent_size.value_or(0)));
  const double feed_forward =
      std::max(number(model.dense_width()),
               number(model.experts()) * (number(model.expert_width()) + 1) +
                   number(shared_expert_width(model)));
  const double layer = 8 * h + 2 * h * in + attention + 3 * (in + 1) * (feed_forward + 1);
  return (2 * number(model.vocab_size) + number(model.learned_positions())) * h + 2 * h +
         number(model.num_layers) * layer + number(mtp_layers(model)) * (layer + 6 * h + 2 * h * h);
}

std::vector<RankParameters> rank_parameters(const Config& config) {
  const ModelConfig& model = config.model;
  const grid::Layout layout = layout_of(config);
  // Padding has no weights.
  const std::int64_t rows =
      std::min(model.vocab_size, split_between(model.padded_vocab_size(), layout.tp));
  const std::int64_t table = rows * model.hidden_size;
  const std::int64_t key_parts = std::min<std::int64_t>(layout.tp, model.query_groups());
  std::vector<RankParameters> ranks(static_cast<std::size_t>(layout.pp));
  std::vector<std::int64_t> embeddings(ranks.size());
  const std::vector<Stage> stages = stages_of(model).all;
  const Pipeline pipeline = pipeline_of(config);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const auto place = static_cast<std::size_t>(pipeline.rank_of(static_cast<int>(s)));
    RankParameters& rank = ranks[place];
    const auto add = [&](const LayerParameters& layer) {
      rank.dense += split_between(layer.split, layout.tp) + split_between(layer.keys, key_parts) +
                    layer.replicated;
      rank.experts += split_between(layer.experts, layout.ep * layout.etp);
      rank.untrained += layer.untrained;
    };
    for (int i = 0; i < stage.layers; ++i) add(layer_parameters(model, stage.first_layer + i));
    for (int i = 0; i < stage.mtp_layers; ++i) add(mtp_layer_parameters(model));
    const bool tied = model.share_embeddings_and_output_weights;
    if (stage.embedding) rank.dense += model.learned_positions() * model.hidden_size;
    if (stage.embedding || stage.mtp_layers > 0 || (stage.loss && tied)) {
      embeddings[place] = table;
    }
    if (stage.loss) {
      rank.dense += model.norm_weights() * model.hidden_size + (tied ? 0 : table);
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].dense += embeddings[i];
  return ranks;
}

}  // namespace weft::derive
