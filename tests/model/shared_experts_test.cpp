// Compares shared experts with double precision, and their gradients with finite differences of it.
#include "weft/model/shared_experts.h"

#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace shared_experts_test {

constexpr std::int64_t kTokens = 5, kHidden = 6, kWidth = 7;

using Values = std::vector<double>;

Values draw(std::uint64_t key, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  base::normals(key, 0, values);
  return {values.begin(), values.end()};
}

double at(const Values& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Problem {
  Values x = draw(1, kTokens* kHidden);
  Values fc1 = draw(2, 2 * kWidth * kHidden);
  Values fc2 = draw(3, kHidden* kWidth);
  Values gate = draw(4, kHidden);  // empty: none
  Values dy = draw(5, kTokens* kHidden);

  Values output() const {
    Values y;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const auto product = [&](const Values& weights, std::int64_t row) {
        double sum = 0;
        for (std::int64_t d = 0; d < kHidden; ++d) {
          sum += at(x, t * kHidden + d) * at(weights, row * kHidden + d);
        }
        return sum;
      };
      Values act;
      for (std::int64_t f = 0; f < kWidth; ++f) {
        const double g = product(fc1, f);
        act.push_back(g * sigmoid(g) * product(fc1, kWidth + f));
      }
      const double factor = gate.empty() ? 1 : sigmoid(product(gate, 0));
      for (std::int64_t d = 0; d < kHidden; ++d) {
        double sum = 0;
        for (std::int64_t f = 0; f < kWidth; ++f) sum += at(fc2, d * kWidth + f) * at(act, f);
        y.push_back(factor * sum);
      }
    }
    return y;
  }

  double loss() const {
    const Values y = output();
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  }

  // Gradient of the loss by one of the members.
  Values gradient(Values Problem::*member) const {
    Values gradient;
    for (std::size_t i = 0; i < (this->*member).size(); ++i) {
      Problem above = *this, below = *this;
      constexpr double kDelta = 1e-5;
      (above.*member)[i] += kDelta;
      (below.*member)[i] -= kDelta;
      gradient.push_back((above.loss() - below.loss()) / (2 * kDelta));
    }
    return gradient;
  }
};

class SharedExpertsPart : public ::testing::TestWithParam<bool> {
 protected:
  Tensor tensor(Shape shape, const Values& values) {
    Tensor t(pool_, DType::F32, shape, Tag::Activations);
    tensor::write<float>(*stream_, t, std::vector<float>(values.begin(), values.end()));
    return t;
  }

  void expect_near(const Tensor& tensor, const Values& expected, const char* what) {
    ASSERT_EQ(tensor.elements(), std::ssize(expected)) << what;
    const std::vector<float> values = tensor::read<float>(*stream_, tensor);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << " " << i;
    }
  }

  Tensor zeros(const Tensor& like) {
    return tensor(like.shape(), Values(static_cast<std::size_t>(like.elements()), 0.0));
  }

  Product product(Shape shape, const Values& values) {
    return {.weight = {.values = tensor(shape, values),
                       .gradient = tensor(shape, Values(values.size(), 0.0))}};
  }

  SharedExpertsWeights weights_of(const Problem& problem) {
    SharedExpertsWeights weights{.fc1_FD = product({2 * kWidth, kHidden}, problem.fc1),
                                 .fc2_DF = product({kHidden, kWidth}, problem.fc2)};
    if (GetParam()) weights.gate_1D = product({1, kHidden}, problem.gate);
    return weights;
  }

  void forward(SharedExpertsState& state, const SharedExpertsWeights& weights, const Tensor& x_TD) {
    take_shared_input(state, weights, x_TD);
    shared_fc1_forward(context_, state, weights);
    shared_fc2_forward(context_, state, weights);
    if (GetParam()) shared_gate_forward(context_, state, weights);
  }

  void second_half_dgrad(SharedExpertsState& state,
                         const SharedExpertsWeights& weights,
                         const Tensor& dy_TD) {
    state.ends.dy_TD = dy_TD;
    if (GetParam()) shared_gate_dgrad(context_, state, weights);
    shared_fc2_dgrad(context_, state, weights);
  }

  void second_half_wgrad(SharedExpertsState& state, const SharedExpertsWeights& weights) {
    if (GetParam()) shared_gate_wgrad(context_, state, weights);
    shared_fc2_wgrad(context_, state, weights);
  }

  devices::Workbench bench_;
  Stream* stream_ = bench_.stream.get();
  Pool& pool_ = bench_.pool;
  config::ModelConfig config_;
  const Context context_{.stream = *stream_, .pool = pool_, .config = config_};
};

TEST_P(SharedExpertsPart, AreThoseOfDoublePrecisionForwardAndBackward) {
  Problem problem;
  if (!GetParam()) problem.gate.clear();
  const SharedExpertsWeights weights = weights_of(problem);
  const Tensor x_TD = tensor({kTokens, kHidden}, problem.x);
  const Tensor dy_TD = tensor({kTokens, kHidden}, problem.dy);
  NormState norm{.y_TD = x_TD, .rstd_T1 = {}, .dy_TD = zeros(x_TD)};
  const Tensor y_TD = zeros(x_TD);
  SharedExpertsState state;

  forward(state, weights, x_TD);
  add_shared_output(context_, state, y_TD);
  second_half_dgrad(state, weights, dy_TD);
  second_half_wgrad(state, weights);
  shared_fc1_dgrad(context_, state, weights);
  add_shared_gradient(context_, state, norm);
  shared_fc1_wgrad(context_, state, weights);
  stream_->synchronize();

  expect_near(y_TD, problem.output(), "y");
  expect_near(norm.dy_TD, problem.gradient(&Problem::x), "dx");
  expect_near(weights.fc1_FD.weight.gradient, problem.gradient(&Problem::fc1), "fc1");
  expect_near(weights.fc2_DF.weight.gradient, problem.gradient(&Problem::fc2), "fc2");
  if (GetParam()) {
    expect_near(weights.gate_1D.weight.gradient, problem.gradient(&Problem::gate), "gate");
  }
}

TEST_P(SharedExpertsPart, KeepNothingBehindTheirGradients) {
  Problem problem;
  const SharedExpertsWeights weights = weights_of(problem);
  const Tensor x_TD = tensor({kTokens, kHidden}, problem.x);
  const NormState norm{.y_TD = x_TD, .rstd_T1 = {}, .dy_TD = zeros(x_TD)};
  const auto before = pool_.use(Tag::Activations).bytes;
  SharedExpertsState state;
  forward(state, weights, x_TD);
  add_shared_output(context_, state, x_TD);
  second_half_dgrad(state, weights, x_TD);
  shared_fc1_dgrad(context_, state, weights);
  add_shared_gradient(context_, state, norm);
  // Delayed weight gradients, in the order of their sum.
  second_half_wgrad(state, weights);
  shared_fc1_wgrad(context_, state, weights);
  EXPECT_EQ(pool_.use(Tag::Activations).bytes, before);
}

TEST_P(SharedExpertsPart, WeightGradientsAreTheSameWhicheverPartIsFirst) {
  Problem problem;
  const Tensor x_TD = tensor({kTokens, kHidden}, problem.x);
  const Tensor dy_TD = tensor({kTokens, kHidden}, problem.dy);
  enum class First { Fc1, Fc2 };
  const auto gradients_of = [&](First first) {
    const SharedExpertsWeights weights = weights_of(problem);
    SharedExpertsState state;
    forward(state, weights, x_TD);
    second_half_dgrad(state, weights, dy_TD);
    shared_fc1_dgrad(context_, state, weights);
    if (first == First::Fc1) shared_fc1_wgrad(context_, state, weights);
    second_half_wgrad(state, weights);
    if (first == First::Fc2) shared_fc1_wgrad(context_, state, weights);
    EXPECT_FALSE(state.ends.x_TD.defined() || state.gate_x_TD.defined());
    std::vector<float> all;
    for (const Product& product : {weights.fc1_FD, weights.fc2_DF, weights.gate_1D}) {
      const Tensor& sum = product.weight.gradient;
      if (sum.defined()) std::ranges::copy(tensor::read<float>(*stream_, sum), back_inserter(all));
    }
    return all;
  };
  EXPECT_EQ(gradients_of(First::Fc1), gradients_of(First::Fc2));
}

INSTANTIATE_TEST_SUITE_P(Gate, SharedExpertsPart, ::testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "Gated" : "Plain";
});

}  // namespace shared_experts_test
}  // namespace weft::model
