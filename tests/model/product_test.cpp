// Products against double precision: forward, input gradient and weight gradient, for one matrix
// and for experts. Gradients are finite differences of loss = sum(y dy).
#include "weft/model/product.h"

#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/model/product_ends.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace product_test {

constexpr std::int64_t kRows = 6, kN = 5, kK = 4;

using Values = std::vector<double>;

Values draw(std::uint64_t key, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  base::normals(key, 0, values);
  return {values.begin(), values.end()};
}

// Rows of each expert in turn; one expert is a product of one matrix.
struct Problem {
  std::vector<std::int64_t> rows = {kRows};
  Values x = draw(1, kRows* kK);
  Values w = draw(2, std::ssize(rows) * kN * kK);
  Values dy = draw(3, kRows* kN);

  Values output() const {
    Values y;
    std::size_t row = 0;
    for (std::size_t e = 0; e < rows.size(); ++e) {
      for (std::int64_t r = 0; r < rows[e]; ++r, ++row) {
        for (std::size_t n = 0; n < kN; ++n) {
          double sum = 0;
          for (std::size_t k = 0; k < kK; ++k) sum += x[row * kK + k] * w[(e * kN + n) * kK + k];
          y.push_back(sum);
        }
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
  Values gradient(Values Problem::*member) const {
    Values gradient;
    for (std::size_t i = 0; i < (this->*member).size(); ++i) {
      Problem above = *this, below = *this;
      (above.*member)[i] += 1e-4;
      (below.*member)[i] -= 1e-4;
      gradient.push_back((above.loss() - below.loss()) / 2e-4);
    }
    return gradient;
  }
};

class Products : public ::testing::Test {
 protected:
  Context context(kernels::Write write = kernels::Write::Accumulate) {
    return {.stream = *stream_, .pool = pool_, .config = config_, .gradient_write = write};
  }
  Tensor tensor(Shape shape, const Values& values) {
    Tensor t(pool_, DType::F32, shape, Tag::Activations);
    tensor::write<float>(*stream_, t, std::vector<float>(values.begin(), values.end()));
    return t;
  }
  Tensor rows_of(const Problem& problem) {
    const std::int64_t experts = std::ssize(problem.rows);
    if (experts == 1) return {};
    Tensor rows(pool_, DType::I64, {experts}, Tag::Activations);
    tensor::write<std::int64_t>(*stream_, rows, problem.rows);
    return rows;
  }
  Product product(const Problem& problem, double gradient, DType dtype = DType::F32) {
    const std::int64_t experts = std::ssize(problem.rows);
    const Shape shape = experts == 1 ? Shape{kN, kK} : Shape{experts, kN, kK};
    Tensor sum(pool_, dtype, shape, Tag::Gradients);
    tensor::write_floats(*stream_, sum, std::vector<float>(problem.w.size(), float(gradient)));
    return {.weight = {.values = tensor(shape, problem.w), .gradient = sum}};
  }
  Values read(const Tensor& tensor) {
    const std::vector<float> values = tensor::read_floats(*stream_, tensor);
    return {values.begin(), values.end()};
  }
  void expect_near(const Values& got, const Values& expected, double tolerance = 2e-5) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
    }
  }
  void expect_definition(const Problem& problem) {
    const Product w = product(problem, 0);
    const Tensor rows_E = rows_of(problem);
    const Tensor x_TK = tensor({kRows, kK}, problem.x), dy_TN = tensor({kRows, kN}, problem.dy);
    expect_near(read(product_forward(context(), {x_TK, rows_E}, w)), problem.output());
    expect_near(read(product_dgrad(context(), {dy_TN, rows_E}, w)), problem.gradient(&Problem::x));
    product_wgrad(context(), w, {dy_TN, rows_E}, x_TK);
    expect_near(read(w.weight.gradient), problem.gradient(&Problem::w));
  }
  // The weight gradient on top of `before`.
  Values weight_gradient(kernels::Write write, double before, DType dtype = DType::F32) {
    const Problem problem;
    const Product w = product(problem, before, dtype);
    product_wgrad(context(write),
                  w,
                  tensor({kRows, kN}, problem.dy),
                  tensor({kRows, kK}, problem.x));
    return read(w.weight.gradient);
  }

  devices::Workbench bench_;
  Stream* stream_ = bench_.stream.get();
  Pool& pool_ = bench_.pool;
  config::ModelConfig config_;
};

TEST_F(Products, OfOneMatrixEqualTheirDefinition) { expect_definition({}); }

TEST_F(Products, OfExpertsEqualTheirDefinition) { expect_definition({.rows = {2, 0, 4}}); }

TEST_F(Products, AWeightGradientAssignsOrAccumulates) {
  const Values expected = Problem().gradient(&Problem::w);
  Values added = expected;
  for (double& value : added) value += 7;
  using kernels::Write;
  for (const bool fused : {true, false}) {
    config_.gradient_accumulation_fusion = fused;
    expect_near(weight_gradient(Write::Assign, 7), expected);
    expect_near(weight_gradient(Write::Accumulate, 7), added);
    expect_near(weight_gradient(Write::Assign, 7, DType::BF16), expected, 1.0 / 128);
    expect_near(weight_gradient(Write::Accumulate, 7, DType::BF16), added, 1.0 / 128);
  }
}

TEST_F(Products, AWeightWithoutAGradientIsNotTrained) {
  const Problem problem;
  Product w = product(problem, 0);
  w.weight.gradient.reset();
  const auto before = read(w.weight.values);
  for (const bool fused : {true, false}) {
    config_.gradient_accumulation_fusion = fused;
    product_wgrad(context(), w, tensor({kRows, kN}, problem.dy), tensor({kRows, kK}, problem.x));
  }
  EXPECT_EQ(read(w.weight.values), before);
}

TEST_F(Products, ResultsHaveTheProductsFormats) {
  const Problem problem;
  Product w = product(problem, 0);
  w.formats = {.input = DType::BF16, .result = DType::F32};
  const Tensor y_TN = product_forward(context(), tensor({kRows, kK}, problem.x), w);
  const Tensor dx_TK = product_dgrad(context(), y_TN, w, Tag::Communication);
  EXPECT_EQ(y_TN.dtype(), DType::F32);
  EXPECT_EQ(dx_TK.dtype(), DType::BF16);
  EXPECT_EQ(pool_.use(Tag::Communication).bytes, dx_TK.bytes());
}

// Rank 1 of two: its own rows last in the gather, as the first product runs. The second product's
// parts for other ranks and for itself lie apart.
TEST_F(Products, InStepsEqualTheirDefinition) {
  const Problem problem;
  const std::int64_t rows = kRows / 2;
  const Product w = product(problem, 0);
  const Tensor x_TK = tensor({kRows, kK}, problem.x), dy_TN = tensor({kRows, kN}, problem.dy);
  ProductEnds first{.own_x_TD = x_TK.rows(rows, rows), .x_TD = x_TK};
  ProductEnds last{.dy_TD = dy_TN};
  last.own_dy_TD = dy_TN.rows(rows, rows);
  Tensor y_TN, dx_TK;
  for (const std::int64_t rank : {0, 1}) {
    Context step = context();
    step.step = ProductStep{.ranks = 2,
                            .rows = rows,
                            .rank = rank,
                            .mirror = rank,
                            .is_own = rank == 1,
                            .opens = rank == 0,
                            .closes = rank == 1};
    first_product_forward(step, y_TN, first, w);
    last_product_forward(step, last, x_TK, w);
    last_product_dgrad(step, dx_TK, last, w);
    first_product_dgrad(step, first, dy_TN, w);
  }
  const Values y = problem.output(), dx = problem.gradient(&Problem::x);
  expect_near(read(y_TN), y);
  expect_near(read(dx_TK), dx);
  const auto half = [](const Values& all, bool second) {
    const auto middle = all.begin() + std::ssize(all) / 2;
    return second ? Values(middle, all.end()) : Values(all.begin(), middle);
  };
  expect_near(read(last.y_TD.rows(0, rows)), half(y, false));
  expect_near(read(last.y_parts_TD.rows(rows, rows)), half(y, true));
  expect_near(read(first.dx_TD.rows(0, rows)), half(dx, false));
  expect_near(read(first.dx_parts_TD.rows(rows, rows)), half(dx, true));
}

// A recomputed product has the rows of its steps; its values are those of one product.
TEST_F(Products, InPartsEqualTheirDefinition) {
  const Problem problem;
  Context parts = context();
  parts.product_parts = 3;
  ProductEnds ends;
  ends.take_input(tensor({kRows, kK}, problem.x));
  Tensor y_TN;
  first_product_forward(parts, y_TN, ends, product(problem, 0));
  expect_near(read(y_TN), problem.output());
}

}  // namespace product_test
}  // namespace weft::model
