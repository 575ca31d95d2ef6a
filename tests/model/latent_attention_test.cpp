// Compares latent attention with its definition in double precision, and its gradients with finite
// differences of that.
#include "weft/model/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/model/rotary.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace latent_attention_test {

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;  // weights, and the input "x"

constexpr std::int64_t kSequence = 6, kTokens = 2 * kSequence;

config::ModelConfig small() {
  config::ModelConfig config;
  config.hidden_size = 8;
  config.num_attention_heads = 2;
  config.multi_latent_attention = true;
  config.q_lora_rank = 5;
  config.kv_lora_rank = 3;
  config.qk_head_dim = 3;
  config.qk_pos_emb_head_dim = 4;
  config.v_head_dim = 2;
  config.rotary_base = 100;
  config.layernorm_epsilon = 1e-3;
  config.latent_layernorm_epsilon = 1e-2;
  return config;
}

std::map<std::string, Shape> shapes_of(const config::ModelConfig& c) {
  const std::int64_t q = c.num_attention_heads * c.latent_head_dim();
  const std::int64_t first = c.q_lora_rank.value_or(q), d = c.hidden_size;
  std::map<std::string, Shape> shapes{
      {"x", {kTokens, d}},
      {"norm", {d}},
      {"down", {first + c.kv_lora_rank + c.qk_pos_emb_head_dim, d}},
      {"kv_norm", {c.kv_lora_rank}},
      {"kv_up", {c.num_attention_heads * (c.qk_head_dim + c.v_head_dim), c.kv_lora_rank}},
      {"proj", {d, c.num_attention_heads * c.v_head_dim}}};
  if (c.q_lora_rank) {
    shapes.emplace("q_norm", Shape{first});
    shapes.emplace("q_up", Shape{q, first});
  }
  return shapes;
}

// Rows of `width`, times w^T.
Values times(const Values& x, const Values& w, std::size_t width) {
  const std::size_t rows = x.size() / width, n = w.size() / width;
  Values y(rows * n);
  for (std::size_t i = 0; i < rows * n; ++i) {
    for (std::size_t k = 0; k < width; ++k) y[i] += x[i / n * width + k] * w[i % n * width + k];
  }
  return y;
}

Values normed(const Values& x, const Values& w, double epsilon) {
  Values y = x;
  for (std::size_t row = 0; row < x.size(); row += w.size()) {
    double squares = 0;
    for (std::size_t i = 0; i < w.size(); ++i) squares += x[row + i] * x[row + i];
    const double scale = 1 / std::sqrt(squares / double(w.size()) + epsilon);
    for (std::size_t i = 0; i < w.size(); ++i) y[row + i] *= scale * w[i];
  }
  return y;
}

Values columns(const Values& x, std::size_t width, std::size_t begin, std::size_t count) {
  Values y;
  for (std::size_t row = 0; row < x.size(); row += width) {
    y.insert(y.end(), x.begin() + long(row + begin), x.begin() + long(row + begin + count));
  }
  return y;
}

// Effect of a config on positions, worked out by hand for the test's cases.
struct Positions {
  double slow_step;      // second pair; the first turns by 1
  double magnitude = 1;  // turned channels
  double scale = 1;      // scores, besides 1 / sqrt(width)
  bool neighbours = true;
};

void turn(double* four, std::int64_t position, const Positions& p) {
  for (std::size_t pair = 0; pair < 2; ++pair) {
    double& a = four[p.neighbours ? 2 * pair : pair];
    double& b = four[p.neighbours ? 2 * pair + 1 : pair + 2];
    const double angle = double(position) * (pair == 0 ? 1 : p.slow_step);
    const double c = p.magnitude * std::cos(angle), s = p.magnitude * std::sin(angle);
    const double turned = a * c - b * s;
    b = b * c + a * s;
    a = turned;
  }
}

Values reference(const config::ModelConfig& c, const Positions& positions, const Named& in) {
  const auto heads = std::size_t(c.num_attention_heads), n = std::size_t(c.qk_head_dim);
  const auto p = std::size_t(c.qk_pos_emb_head_dim), v = std::size_t(c.v_head_dim);
  const auto r = std::size_t(c.kv_lora_rank), d = std::size_t(c.hidden_size), w = n + p;
  const Values down =
      times(normed(in.at("x"), in.at("norm"), c.layernorm_epsilon), in.at("down"), d);
  const std::size_t wide = in.at("down").size() / d, first = wide - r - p;
  Values q = columns(down, wide, 0, first);
  if (c.q_lora_rank) q = times(normed(q, in.at("q_norm"), 1e-2), in.at("q_up"), first);
  const Values kv =
      times(normed(columns(down, wide, first, r), in.at("kv_norm"), 1e-2), in.at("kv_up"), r);
  Values key = columns(down, wide, first + r, p);
  for (std::size_t t = 0; t < std::size_t(kTokens); ++t) {
    const std::int64_t position = std::int64_t(t) % kSequence;
    turn(&key[t * p], position, positions);
    for (std::size_t h = 0; h < heads; ++h) turn(&q[(t * heads + h) * w + n], position, positions);
  }
  Values o(std::size_t(kTokens) * heads * v);
  for (std::size_t t = 0; t < std::size_t(kTokens); ++t) {
    for (std::size_t h = 0; h < heads; ++h) {
      const double* query = &q[(t * heads + h) * w];
      const std::size_t begin = t / std::size_t(kSequence) * std::size_t(kSequence);
      Values weights;
      double sum = 0;
      for (std::size_t u = begin; u <= t; ++u) {
        double score = 0;
        for (std::size_t i = 0; i < n; ++i) score += query[i] * kv[(u * heads + h) * (n + v) + i];
        for (std::size_t i = 0; i < p; ++i) score += query[n + i] * key[u * p + i];
        weights.push_back(std::exp(score * positions.scale / std::sqrt(double(w))));
        sum += weights.back();
      }
      for (std::size_t u = begin; u <= t; ++u) {
        for (std::size_t i = 0; i < v; ++i) {
          o[(t * heads + h) * v + i] +=
              weights[u - begin] / sum * kv[(u * heads + h) * (n + v) + n + i];
        }
      }
    }
  }
  Values y = times(o, in.at("proj"), heads * v);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += in.at("x")[i];
  return y;
}

class Engine {
 public:
  explicit Engine(const config::ModelConfig& config) : config_(config) {
    rotary_ = Tensor(pool_, DType::F32, {kSequence, config.rotary_width()}, Tag::Workspace);
    kernels::rotary_table(*stream_, rotary_, rotary_angles(config_));
  }

  Tensor put(const Values& values, Shape shape) {
    Tensor tensor(pool_, DType::F32, shape, Tag::Activations);
    tensor::write<float>(*stream_, tensor, std::vector<float>(values.begin(), values.end()));
    return tensor;
  }
  LatentAttentionWeights weights(const std::function<Weight(const char*)>& pick) const {
    LatentAttentionWeights all{.norm_D = pick("norm"),
                               .down_CD = {.weight = pick("down")},
                               .kv_norm_R = pick("kv_norm"),
                               .kv_up_UR = {.weight = pick("kv_up")},
                               .proj_DV = {.weight = pick("proj")}};
    if (config_.q_lora_rank) {
      all.q_norm_L = pick("q_norm");
      all.q_up_QL = {.weight = pick("q_up")};
    }
    return all;
  }
  Context context() {
    return {.stream = *stream_,
            .pool = pool_,
            .config = config_,
            .sequence = kSequence,
            .rotary_SD = rotary_};
  }

 private:
  const config::ModelConfig& config_;
  devices::Workbench bench_{2};
  tensor::Pool& pool_ = bench_.pool;
  tensor::Stream* stream_ = bench_.stream.get();
  Tensor rotary_;
};

void expect_close(Engine& engine,
                  const Tensor& got,
                  const Values& want,
                  double tolerance,
                  const std::string& name) {
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  const std::vector<float> values = tensor::read<float>(engine.context().stream, got);
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(double(values[i]), want[i], tolerance * largest) << name << " " << i;
  }
}

void check(const config::ModelConfig& config, const Positions& positions) {
  Engine engine(config);
  Named in;
  std::map<std::string, Tensor> tensors, gradients;
  const std::map<std::string, Shape> shapes = shapes_of(config);
  for (const auto& [name, shape] : shapes) {
    std::vector<float> draws(std::size_t(shape.elements()));
    base::normals(base::hash(name), 0, draws);
    in[name] = Values(draws.begin(), draws.end());
    tensors[name] = engine.put(in[name], shape);
    gradients[name] = engine.put(Values(draws.size()), shape);
  }
  std::vector<float> draws(std::size_t(kTokens * config.hidden_size));
  base::normals(7, 0, draws);
  const Values dh(draws.begin(), draws.end());
  const Tensor dh_TD = engine.put(dh, shapes.at("x"));

  const Context context = engine.context();
  LatentAttentionState state;
  const auto weights = engine.weights([&](const char* name) {
    return Weight{.values = tensors.at(name), .gradient = gradients.at(name)};
  });
  const Tensor& x_TD = tensors.at("x");
  sub_layer_norm_forward(context, state.norm, state.ends, x_TD, weights.norm_D);
  attention_qkv_forward(context, state, weights);
  attention_expand_forward(context, state, weights);
  attention_core_forward(context, state);
  attention_proj_forward(context, state, weights);
  const Tensor h = residual_forward(context, state.ends, x_TD);
  expect_close(engine, h, reference(config, positions, in), 2e-6, "forward");
  state.ends.dy_TD = dh_TD;
  attention_proj_dgrad(context, state, weights);
  attention_core_dgrad(context, state);
  attention_expand_dgrad(context, state, weights);
  attention_qkv_dgrad(context, state, weights);
  gradients["x"] =
      sub_layer_norm_dgrad(context, state.norm, state.ends, x_TD, weights.norm_D, dh_TD);
  attention_proj_wgrad(context, state, weights);
  attention_expand_wgrad(context, state, weights);
  attention_qkv_wgrad(context, state, weights);
  sub_layer_norm_wgrad(context, state.norm, x_TD, weights.norm_D);
  EXPECT_FALSE(state.down_TC.defined() || state.norm.y_TD.defined());

  const auto loss = [&] {
    const Values y = reference(config, positions, in);
    return std::inner_product(y.begin(), y.end(), dh.begin(), 0.0);
  };
  for (auto& [name, values] : in) {
    Values difference;
    for (double& value : values) {
      const double before = value;
      value = before + 1e-5;
      const double above = loss();
      value = before - 1e-5;
      difference.push_back((above - loss()) / 2e-5);
      value = before;
    }
    expect_close(engine, gradients.at(name), difference, 1e-5, name);
  }
}

TEST(LatentAttention, EqualsItsDefinition) { check(small(), {.slow_step = 0.1}); }

TEST(LatentAttention, EqualsItsDefinitionWithWholeQueries) {
  config::ModelConfig config = small();
  config.q_lora_rank = std::nullopt;
  check(config, {.slow_step = 0.1});
}

TEST(LatentAttention, EqualsItsDefinitionWithHalvesThatTurn) {
  config::ModelConfig config = small();
  config.rotary_interleaved = false;
  check(config, {.slow_step = 0.1, .neighbours = false});
}

// Over 8 positions the second pair makes less than one turn: it is stretched fully.
TEST(LatentAttention, EqualsItsDefinitionWithStretchedPositions) {
  config::ModelConfig config = small();
  config.rope_type = config::RopeType::Yarn;
  config.rotary_scaling_factor = 4;
  config.original_max_position_embeddings = 8;
  config.mscale = 2;
  config.mscale_all_dim = 3;
  const double all = 0.3 * std::log(4) + 1;
  check(config,
        {.slow_step = 0.1 / 4, .magnitude = (0.2 * std::log(4) + 1) / all, .scale = all * all});
}

}  // namespace latent_attention_test
}  // namespace weft::model
