#include "weft/derive/parameter_list.h"

#include <cmath>

#include "weft/base/text.h"
#include "weft/derive/layer_kind.h"

namespace weft::derive {
namespace {

// Collects parameter specs with the rank's part of each.
class SpecList {
 public:
  SpecList(const config::ModelConfig& config, const AxisRanks& ranks)
      : config_(config), ranks_(ranks) {}

  void add(ParameterSpec spec) {
    spec.slice = part_of(config_, spec.global_shape, spec.splits, ranks_);
    spec.shape = spec.slice.part();
    spec.room = part_of(config_, spec.global_shape, spec.splits, {}).elements.count;
    specs.push_back(std::move(spec));
  }

  void norm(std::string name, std::int64_t width, int layer, std::vector<AxisSplit> splits = {}) {
    add({.name = std::move(name),
         .global_shape = {width},
         .splits = std::move(splits),
         .layer = layer,
         .init_deviation = 0});
  }

  void matrix(std::string name,
              base::Shape shape,
              int layer,
              double deviation,
              std::vector<AxisSplit> splits = {}) {
    add({.name = std::move(name),
         .global_shape = shape,
         .splits = std::move(splits),
         .layer = layer,
         .init_deviation = deviation});
  }

  // One matrix per expert of the model.
  void experts(std::string name, base::Shape shape, int layer, double deviation, AxisSplit each) {
    const std::int64_t count = config_.experts();
    ++each.dim;
    add({.name = std::move(name),
         .global_shape = {count, shape[0], shape[1]},
         .splits = {{.axis = Axis::Ep, .dim = 0, .blocks = {{.count = count}}}, std::move(each)},
         .home = Home::Expert,
         .layer = layer,
         .init_deviation = deviation});
  }

  void untrained(std::string name, std::int64_t width, int layer) {
    add({.name = std::move(name),
         .global_shape = {width},
         .splits = {},
         .home = Home::Untrained,
         .layer = layer});
  }

  std::vector<ParameterSpec> specs;

 private:
  const config::ModelConfig& config_;
  const AxisRanks ranks_;
};

// Splits rows (outputs) or columns (inputs) of a matrix among the ranks of an axis.
AxisSplit rows(std::vector<SplitBlock> blocks, Axis axis = Axis::Tp) {
  return {.axis = axis, .dim = 0, .blocks = std::move(blocks)};
}
AxisSplit columns(std::int64_t count, Axis axis = Axis::Tp) {
  return {.axis = axis, .dim = 1, .blocks = {{.count = count}}};
}

// Initial standard deviations: of most matrices, and of those that add to the residual stream.
struct Deviations {
  double in, out;
};

void list_attention(SpecList& list,
                    const config::ModelConfig& config,
                    int layer,
                    const Deviations& deviations) {
  const std::int64_t d = config.hidden_size, q = config.query_width(), k = config.key_width();
  const std::string prefix = base::text("layers.{}.attention.", layer);
  list.norm(prefix + "norm.weight", d, layer);
  const std::int64_t groups = config.query_groups();
  const SplitBlock queries{.count = q}, keys{.count = k, .most_parts = groups};
  list.matrix(prefix + "qkv.weight",
              {q + 2 * k, d},
              layer,
              deviations.in,
              {rows({queries, keys, keys})});
  if (config.qk_layernorm != config::QkNorm::None) {
    // A per-head norm is shared by all heads; a norm of the projection has its channels.
    const bool per_head = config.qk_layernorm == config::QkNorm::Head;
    const auto norm = [&](const char* name, const SplitBlock& channels) {
      if (per_head) return list.norm(prefix + name, config.head_dim(), layer);
      list.norm(prefix + name, channels.count, layer, {rows({channels})});
    };
    norm("q_norm.weight", queries);
    norm("k_norm.weight", keys);
  }
  list.matrix(prefix + "proj.weight", {d, q}, layer, deviations.out, {columns(q)});
}

void list_latent_attention(SpecList& list,
                           const config::ModelConfig& config,
                           int layer,
                           const Deviations& deviations) {
  const std::int64_t d = config.hidden_size, heads = config.num_attention_heads;
  const std::int64_t q = heads * config.latent_head_dim(), r = config.kv_lora_rank;
  const std::int64_t query = config.q_lora_rank.value_or(q);
  const std::int64_t p = config.qk_pos_emb_head_dim;
  const std::int64_t up = heads * (config.qk_head_dim + config.v_head_dim);
  const std::int64_t value = heads * config.v_head_dim;
  const std::string prefix = base::text("layers.{}.attention.", layer);
  // Compressed columns are equal on all ranks; whole queries are divided by heads.
  const SplitBlock queries{.count = query, .most_parts = config.q_lora_rank ? 1 : heads};
  const SplitBlock compressed{.count = r + p, .most_parts = 1};
  list.norm(prefix + "norm.weight", d, layer);
  list.matrix(prefix + "down.weight",
              {query + r + p, d},
              layer,
              deviations.in,
              {rows({queries, compressed})});
  if (config.q_lora_rank) {
    list.norm(prefix + "q_norm.weight", query, layer);
    list.matrix(prefix + "q_up.weight", {q, query}, layer, deviations.in, {rows({{.count = q}})});
  }
  list.norm(prefix + "kv_norm.weight", r, layer);
  list.matrix(prefix + "kv_up.weight", {up, r}, layer, deviations.in, {rows({{.count = up}})});
  list.matrix(prefix + "proj.weight", {d, value}, layer, deviations.out, {columns(value)});
}

// Gate and up, each divided separately, and down.
void list_feed_forward(SpecList& list,
                       const std::string& prefix,
                       std::int64_t hidden,
                       std::int64_t width,
                       int layer,
                       const Deviations& deviations) {
  const SplitBlock half{.count = width};
  list.matrix(prefix + "fc1.weight",
              {2 * width, hidden},
              layer,
              deviations.in,
              {rows({half, half})});
  list.matrix(prefix + "fc2.weight", {hidden, width}, layer, deviations.out, {columns(width)});
}

void list_moe(SpecList& list,
              const config::ModelConfig& config,
              int layer,
              const Deviations& deviations) {
  const std::int64_t d = config.hidden_size, f = config.expert_width();
  const std::string prefix = base::text("layers.{}.", layer);
  list.norm(prefix + "route.norm.weight", d, layer);
  list.matrix(prefix + "route.router.weight", {config.experts(), d}, layer, deviations.in);
  if (config.moe_router_enable_expert_bias) {
    list.untrained(prefix + "route.bias", config.experts(), layer);
  }
  if (const std::int64_t shared = shared_expert_width(config); shared > 0) {
    list_feed_forward(list, prefix + "shared.", d, shared, layer, deviations);
    if (config.moe_shared_expert_gate) {
      list.matrix(prefix + "shared.gate.weight", {1, d}, layer, deviations.in);
    }
  }
  const SplitBlock half{.count = f};
  list.experts(prefix + "experts.fc1.weight",
               {2 * f, d},
               layer,
               deviations.in,
               rows({half, half}, Axis::Etp));
  list.experts(prefix + "experts.fc2.weight", {d, f}, layer, deviations.out, columns(f, Axis::Etp));
}

void list_layer(SpecList& list, const config::ModelConfig& config, int layer) {
  const double in = config.init_method_std;
  const Deviations deviations{.in = in,
                              .out = in / std::sqrt(2.0 * static_cast<double>(config.num_layers))};
  if (config.multi_latent_attention) {
    list_latent_attention(list, config, layer, deviations);
  } else {
    list_attention(list, config, layer, deviations);
  }
  if (config.is_moe_layer(layer)) return list_moe(list, config, layer, deviations);
  const std::string prefix = base::text("layers.{}.mlp.", layer);
  list.norm(prefix + "norm.weight", config.hidden_size, layer);
  list_feed_forward(list, prefix, config.hidden_size, config.dense_width(), layer, deviations);
}

}  // namespace

std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config,
                                           const Holding& holding,
                                           const AxisRanks& ranks) {
  SpecList list(config, ranks);
  const auto table = [&](const char* name) {
    list.matrix(name,
                {config.vocab_size, config.hidden_size},
                -1,
                config.init_method_std,
                {vocabulary_split(config)});
  };
  if (holding.embedding) table("embedding.weight");
  for (const int layer : holding.layers) list_layer(list, config, layer);
  if (holding.head) {
    list.norm("head.norm.weight", config.hidden_size, -1);
    if (!config.share_embeddings_and_output_weights) table("head.weight");
    if (holding.copies_table(config)) table("embedding.weight");
  }
  return list.specs;
}

}  // namespace weft::derive
