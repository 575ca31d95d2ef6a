// Capacity: the router's choice, its kept part, and the gradient of that.
#include "weft/model/moe/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace route_test {

constexpr std::int64_t kTokens = 24, kWidth = 8, kExperts = 4, kBest = 2;

config::ModelConfig config_of(config::ScoreFunction score, config::DropPolicy policy) {
  config::ModelConfig config;
  config.hidden_size = kWidth;
  config.num_moe_experts = kExperts;
  config.moe_router_topk = kBest;
  config.moe_router_score_function = score;
  config.moe_expert_capacity_factor = 0.75;
  config.moe_token_drop_policy = policy;
  return config;
}

// A routing of the tokens, with separate memory.
class Routing {
 public:
  explicit Routing(const config::ModelConfig& config) : config_(config) {
    weights_.norm_D.values = floats({kWidth}, 0);
    std::fill_n(weights_.norm_D.values.host<float>(), kWidth, 1.0f);
    Weight& router_ED = weights_.router_ED.weight;
    router_ED.values = floats({kExperts, kWidth}, 1);
    router_ED.gradient = floats({kExperts, kWidth}, 0);
    sums_.rows_1E = integers({1, kExperts});
    sums_.dropped_1 = integers({1});
  }

  void forward() {
    norm_forward(context(), state_.norm, h_TD_, weights_.norm_D);
    choose_forward(context(), state_, weights_, sums_);
  }

  // Gradient of sum(w p) for the router's weights.
  void backward() {
    state_.dp_Tk = w_Tk_;
    state_.norm.dy_TD = floats({kTokens, kWidth}, 0);
    choose_dgrad(context(), state_, weights_, sums_);
    choose_wgrad(context(), state_, weights_);
  }

  double weighed() const {
    double sum = 0;
    const std::vector<float> p_Tk = probabilities();
    for (std::int64_t i = 0; i < kTokens * kBest; ++i) {
      sum += double(w_Tk_.host<float>()[i]) * double(p_Tk[std::size_t(i)]);
    }
    return sum;
  }

  std::vector<float> probabilities() const { return tensor::read<float>(*stream_, state_.p_Tk); }
  std::vector<std::int32_t> experts() const {
    return tensor::read<std::int32_t>(*stream_, state_.experts_Tk);
  }
  float& router(std::int64_t i) { return weights_.router_ED.weight.values.host<float>()[i]; }
  float gradient(std::int64_t i) const {
    return weights_.router_ED.weight.gradient.host<float>()[i];
  }
  std::int64_t dropped() const { return *sums_.dropped_1.host<std::int64_t>(); }

 private:
  Context context() {
    return {.stream = *stream_, .pool = pool_, .config = config_, .sequence = kTokens};
  }

  Tensor floats(Shape shape, float deviation) {
    Tensor x = Tensor::host_visible(pool_, DType::F32, shape, Tag::Activations);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      x.host<float>()[i] = deviation * float(base::normal(++drawn_, std::uint64_t(i)));
    }
    return x;
  }

  Tensor integers(Shape shape) {
    Tensor x = Tensor::host_visible(pool_, DType::I64, shape, Tag::Activations);
    std::fill_n(x.host<std::int64_t>(), x.elements(), 0);
    return x;
  }

  config::ModelConfig config_;
  devices::Workbench bench_;
  Pool& pool_ = bench_.pool;
  Stream* stream_ = bench_.stream.get();
  std::uint64_t drawn_ = 0;
  Tensor h_TD_ = floats({kTokens, kWidth}, 1), w_Tk_ = floats({kTokens, kBest}, 1);
  RouteWeights weights_;
  RouterSums sums_;
  RouteState state_;
};

void check_capacity(const config::ModelConfig& config) {
  Routing routing(config);
  routing.forward();
  const std::vector<std::int32_t> experts = routing.experts();
  const std::vector<float> p_Tk = routing.probabilities();
  std::vector<std::int64_t> rows(kExperts, 0);
  std::int64_t dropped = 0;
  for (std::size_t i = 0; i < kTokens * kBest; ++i) {
    const float p = p_Tk[i];
    if (experts[i] < 0) {
      ++dropped;
      EXPECT_EQ(p, 0.0f);
    } else {
      ++rows[std::size_t(experts[i])];
      EXPECT_GT(p, 0.0f);
    }
  }
  EXPECT_EQ(config.expert_capacity(kTokens), 9);
  EXPECT_EQ(std::ranges::max(rows), 9);
  EXPECT_EQ(routing.dropped(), dropped);
  EXPECT_GE(dropped, kTokens * kBest - kExperts * 9);

  routing.backward();
  for (std::int64_t i = 0; i < kExperts * kWidth; ++i) {
    const auto moved = [&](float by) {
      Routing other(config);
      other.router(i) += by;
      other.forward();
      return other.weighed();
    };
    const float delta = 1e-3f;
    const double difference = (moved(delta) - moved(-delta)) / (2.0 * delta);
    EXPECT_NEAR(routing.gradient(i), difference, 2e-3 * (1 + std::abs(difference))) << i;
  }
}

TEST(Route, ExpertsKeepTheirCapacityAndDroppedSlotsHaveNoGradient) {
  for (const auto policy : {config::DropPolicy::Probs, config::DropPolicy::Position}) {
    for (const auto score : {config::ScoreFunction::Softmax, config::ScoreFunction::Sigmoid}) {
      check_capacity(config_of(score, policy));
    }
  }
}

}  // namespace route_test
}  // namespace weft::model
