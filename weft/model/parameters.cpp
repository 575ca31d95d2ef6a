#include "weft/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>

#include "weft/base/random.h"
#include "weft/derive/layer_kind.h"

namespace weft::model {
namespace {

using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;

constexpr std::int64_t kStartMultiple = 64;  // elements; where a parameter may start in its buffer

class SpecList {
 public:
  SpecList(const config::ModelConfig& config, int ep_rank) : config_(config), ep_rank_(ep_rank) {}

  void norm(std::string name, std::int64_t width, int layer) {
    specs.push_back({.name = std::move(name),
                     .global_shape = {width},
                     .shape = {width},
                     .layer = layer,
                     .init_deviation = 0});
  }

  void matrix(std::string name, Shape shape, int layer, double deviation) {
    specs.push_back({.name = std::move(name),
                     .global_shape = shape,
                     .shape = shape,
                     .layer = layer,
                     .init_deviation = deviation});
  }

  void experts(std::string name, std::int64_t n, std::int64_t k, int layer, double deviation) {
    const std::int64_t local = config_.local_experts();
    specs.push_back({.name = std::move(name),
                     .global_shape = {config_.experts(), n, k},
                     .shape = {local, n, k},
                     .begin = ep_rank_ * local * n * k,
                     .home = Home::Expert,
                     .layer = layer,
                     .init_deviation = deviation});
  }

  void untrained(std::string name, std::int64_t width, int layer) {
    specs.push_back({.name = std::move(name),
                     .global_shape = {width},
                     .shape = {width},
                     .home = Home::Untrained,
                     .layer = layer});
  }

  std::vector<ParameterSpec> specs;

 private:
  const config::ModelConfig& config_;
  int ep_rank_;
};

// Of the initial weights: of products, and of those that add to the residual stream.
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
  list.matrix(prefix + "qkv.weight", {q + 2 * k, d}, layer, deviations.in);
  if (config.qk_layernorm != config::QkNorm::None) {
    const bool per_head = config.qk_layernorm == config::QkNorm::Head;
    list.norm(prefix + "q_norm.weight", per_head ? config.head_dim() : q, layer);
    list.norm(prefix + "k_norm.weight", per_head ? config.head_dim() : k, layer);
  }
  list.matrix(prefix + "proj.weight", {d, q}, layer, deviations.out);
}

void list_latent_attention(SpecList& list,
                           const config::ModelConfig& config,
                           int layer,
                           const Deviations& deviations) {
  const std::int64_t d = config.hidden_size, heads = config.num_attention_heads;
  const std::int64_t q = heads * config.latent_head_dim(), r = config.kv_lora_rank;
  const std::int64_t query = config.q_lora_rank.value_or(q);
  const std::string prefix = base::text("layers.{}.attention.", layer);
  list.norm(prefix + "norm.weight", d, layer);
  list.matrix(prefix + "down.weight",
              {query + r + config.qk_pos_emb_head_dim, d},
              layer,
              deviations.in);
  if (config.q_lora_rank) {
    list.norm(prefix + "q_norm.weight", query, layer);
    list.matrix(prefix + "q_up.weight", {q, query}, layer, deviations.in);
  }
  list.norm(prefix + "kv_norm.weight", r, layer);
  list.matrix(prefix + "kv_up.weight",
              {heads * (config.qk_head_dim + config.v_head_dim), r},
              layer,
              deviations.in);
  list.matrix(prefix + "proj.weight", {d, heads * config.v_head_dim}, layer, deviations.out);
}

void list_layer(SpecList& list, const config::ModelConfig& config, int layer) {
  const double in = config.init_method_std;
  const double out = in / std::sqrt(2.0 * static_cast<double>(config.num_layers));
  const std::int64_t d = config.hidden_size;
  const std::string prefix = base::text("layers.{}.", layer);
  if (config.multi_latent_attention) {
    list_latent_attention(list, config, layer, {.in = in, .out = out});
  } else {
    list_attention(list, config, layer, {.in = in, .out = out});
  }
  if (config.is_moe_layer(layer)) {
    const std::int64_t f = config.expert_width();
    list.norm(prefix + "route.norm.weight", d, layer);
    list.matrix(prefix + "route.router.weight", {config.experts(), d}, layer, in);
    if (config.moe_router_enable_expert_bias) {
      list.untrained(prefix + "route.bias", config.experts(), layer);
    }
    if (const std::int64_t shared = derive::shared_expert_width(config); shared > 0) {
      list.matrix(prefix + "shared.fc1.weight", {2 * shared, d}, layer, in);
      list.matrix(prefix + "shared.fc2.weight", {d, shared}, layer, out);
      if (config.moe_shared_expert_gate) {
        list.matrix(prefix + "shared.gate.weight", {1, d}, layer, in);
      }
    }
    list.experts(prefix + "experts.fc1.weight", 2 * f, d, layer, in);
    list.experts(prefix + "experts.fc2.weight", d, f, layer, out);
  } else {
    const std::int64_t f = config.dense_width();
    list.norm(prefix + "mlp.norm.weight", d, layer);
    list.matrix(prefix + "mlp.fc1.weight", {2 * f, d}, layer, in);
    list.matrix(prefix + "mlp.fc2.weight", {d, f}, layer, out);
  }
}

std::int64_t padded(std::int64_t elements) {
  return (elements + kStartMultiple - 1) / kStartMultiple * kStartMultiple;
}

// Zeroes what the host may touch before any stream does.
void clear(const Tensor& t) {
  if (t.bytes() > 0) std::memset(t.host_raw(), 0, static_cast<std::size_t>(t.bytes()));
}

void fill(const Parameter& parameter, std::uint64_t seed) {
  const std::int64_t count = parameter.weight.elements();
  std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 16)));
  const std::uint64_t key = base::combine(seed, base::hash(parameter.spec.name));
  const auto deviation = static_cast<float>(parameter.spec.init_deviation);
  for (std::int64_t begin = 0; begin < count; begin += std::ssize(values)) {
    const auto n =
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(values), count - begin));
    const std::span<float> part = std::span(values).first(n);
    if (parameter.spec.is_matrix()) {
      base::normals(key, static_cast<std::uint64_t>(parameter.spec.begin + begin), part);
      for (float& value : part) value *= deviation;
    } else {
      std::ranges::fill(part, parameter.spec.is_trained() ? 1.0f : 0.0f);
    }
    if (parameter.weight.dtype() == DType::F32) {
      std::ranges::copy(part, parameter.weight.host<float>() + begin);
    } else {
      std::ranges::transform(part, parameter.weight.host<BFloat16>() + begin, [](float value) {
        return BFloat16(value);
      });
    }
  }
}

}  // namespace

tensor::DType dtype_of(config::Precision precision) {
  return precision == config::Precision::Fp32 ? DType::F32 : DType::BF16;
}

std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config,
                                           const Holding& holding,
                                           int ep_rank) {
  SpecList list(config, ep_rank);
  const auto table = [&](const char* name) {
    list.matrix(name, {config.vocab_size, config.hidden_size}, -1, config.init_method_std);
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

Parameters::Parameters(Pool& pool,
                       const config::ModelConfig& config,
                       const Holding& holding,
                       int ep_rank)
    : holding_(holding) {
  std::array<std::int64_t, 3> ends{};  // by home
  for (ParameterSpec& spec : list_parameters(config, holding, ep_rank)) {
    all_.push_back({.spec = std::move(spec)});
  }
  for (Parameter& parameter : all_ | std::views::reverse) {
    std::int64_t& end = ends[static_cast<std::size_t>(parameter.spec.home)];
    parameter.offset = end;
    end += padded(parameter.spec.shape.elements());
  }
  const DType dtype = dtype_of(config.params_dtype);
  for (const Home home : {Home::Dense, Home::Expert, Home::Untrained}) {
    const std::int64_t elements = ends[static_cast<std::size_t>(home)];
    ParameterBuffer& buffer = buffers_[static_cast<std::size_t>(home)];
    const bool trained = home != Home::Untrained;
    buffer.weights = Tensor(pool, trained ? dtype : DType::F32, {elements}, Tag::Weights);
    clear(buffer.weights);
    if (!trained) continue;
    buffer.gradients = Tensor(pool, DType::F32, {elements}, Tag::Gradients);
    clear(buffer.gradients);
  }
  for (Parameter& parameter : all_) {
    const ParameterBuffer& home = buffer(parameter.spec.home);
    parameter.weight = home.weights.range(parameter.offset, parameter.spec.shape);
    if (!parameter.spec.is_trained()) continue;
    parameter.gradient = home.gradients.range(parameter.offset, parameter.spec.shape);
  }
  const Tensor& dense_gradients = buffer(Home::Dense).gradients;
  normed_dense_gradients_ = dense_gradients;
  if (!config.share_embeddings_and_output_weights || !holding.head) return;
  const Parameter& table = find("embedding.weight");
  if (holding.copies_table(config)) {
    CHECK(table.offset == 0, "the copied table is not the last in use");
    const std::int64_t begin = padded(table.weight.elements());
    normed_dense_gradients_ = dense_gradients.range(begin, {dense_gradients.elements() - begin});
  } else {
    tied_head_gradient_ = Tensor(pool, DType::F32, table.spec.shape, Tag::Gradients);
    clear(tied_head_gradient_);
  }
}

bool Parameters::has(std::string_view name) const {
  return std::ranges::any_of(all_, [&](const Parameter& p) { return p.spec.name == name; });
}

const Parameter& Parameters::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(all_, [&](const Parameter& p) { return p.spec.name == name; });
  CHECK(found != all_.end(), "no parameter '{}'", name);
  return *found;
}

void Parameters::initialise(std::uint64_t seed) {
  for (const Parameter& parameter : all_) fill(parameter, seed);
}

}  // namespace weft::model
