#include "weft/kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace weft::kernels::cpu {
namespace vector_math_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(VectorMath, ExpIsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, y;
  for (float at = -87.3f; at < 88.7f; at += 0.00117f) x.push_back(at);
  y.resize(x.size());
#pragma omp simd
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = exp_f32(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    const auto near = static_cast<float>(want);
    const double unit = static_cast<double>(std::nextafter(near, kInfinity) - near);
    ASSERT_LT(std::abs(static_cast<double>(y[i]) - want), 2 * unit) << x[i];
    ASSERT_EQ(exp_f32(x[i]), y[i]) << "alone and in a vector, " << x[i];
  }
}

TEST(VectorMath, ExpHasTheEndsOfStdExp) {
  for (const float x : {-kInfinity, -1e30f, -200.0f, -104.0f, 88.73f, 200.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(exp_f32(x), std::exp(x)) << x;
  }
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
}

TEST(VectorMath, SigmoidIsAccurateOnBothSides) {
  for (float x = -80; x < 80; x += 0.37f) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(static_cast<double>(sigmoid_f32(x)), want, 4e-7 * want) << x;
  }
}

TEST(VectorMath, TheLargestIsFoundAtEveryPlaceOfEveryLength) {
  for (std::int64_t n = 1; n < 40; ++n) {
    for (std::int64_t place = 0; place < n; ++place) {
      std::vector<float> x(static_cast<std::size_t>(n), -3.0f);
      x[static_cast<std::size_t>(place)] = -1.0f;
      ASSERT_EQ(largest(x.data(), n), -1.0f) << place << " of " << n;
    }
  }
}

}  // namespace vector_math_test
}  // namespace weft::kernels::cpu
