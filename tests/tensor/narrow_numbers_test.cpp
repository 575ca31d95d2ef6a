// 16-bit storage of numbers, over all bit patterns.
#include "weft/tensor/narrow_numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/soak.h"

namespace weft::tensor {
namespace narrow_numbers_test {

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

Float16 half_of(std::uint32_t bits) {
  Float16 half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

TEST(Half, EveryPatternIsItsValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = static_cast<float>(half_of(bits));
    const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double sign = bits >> 15 != 0 ? -1 : 1;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0) << bits;
      EXPECT_EQ(std::isinf(value), fraction == 0) << bits;
      EXPECT_EQ(std::signbit(value), sign < 0) << bits;
      EXPECT_EQ(std::isnan(static_cast<float>(Float16(value))), fraction != 0) << bits;
      continue;
    }
    const double size = exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024.0 + fraction, int(exponent) - 25);
    ASSERT_EQ(double(value), sign * size) << bits;
    ASSERT_EQ(Float16(value).bits, bits);
  }
}

// Between two halves: the nearer one; in the middle: the even one. Beyond the largest: infinity.
TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = static_cast<float>(half_of(bits));
    const double high = bits == 0x7bff ? 65536 : double(static_cast<float>(half_of(bits + 1)));
    const auto middle = static_cast<float>((low + high) / 2);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(Float16(middle).bits, even) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(Float16(std::nextafter(middle, 1e9f)).bits, bits + 1);
    ASSERT_EQ(Float16(-middle).bits, even | 0x8000u);
  }
}

// Number of wrong patterns with one upper half. Counting keeps the loop fast.
int wrong_among(std::uint32_t upper) {
  int wrong = 0;
#pragma omp simd reduction(+ : wrong)
  for (std::uint32_t lower = 0; lower < 65536; ++lower) {
    const std::uint32_t bits = upper << 16 | lower;
    const SplitFloat halves = split_float(float_of(bits));
    const std::uint32_t joined = bits_of(joined_float(halves.upper, halves.remainder));
    const std::uint32_t even = upper + (lower + (upper & 1) > 0x8000u ? 1 : 0);
    const std::uint32_t expected = even + (lower == 0x8000u && upper % 2 == 0 ? 1 : 0);
    wrong += joined != bits || halves.upper != (expected & 0xffffu) ? 1 : 0;
  }
  return wrong;
}

// The fp32 number returns bit by bit. Its upper part is the number rounded to nearest even, except
// for ties that this would round towards zero.
TEST(SplitFloat, LosesNothingOfAnyNumber) {
  for (std::uint32_t upper = 0; upper < 65536; upper += few_or_many(97, 1)) {
    const bool is_finite = (upper & 0x7fffu) < 0x7f80u;
    if (!is_finite) continue;
    ASSERT_EQ(wrong_among(upper), 0) << upper;
  }
  for (const float value : {HUGE_VALF, -HUGE_VALF}) {
    const SplitFloat halves = split_float(value);
    EXPECT_EQ(joined_float(halves.upper, halves.remainder), value);
  }
}

TEST(SplitFloat, TheUpperPartIsTheNearestButForTies) {
  for (const float value : {1.0f, -3.1415927f, 1e-40f, 65504.0f, 3.4e38f}) {
    EXPECT_EQ(split_float(value).upper, BFloat16(value).bits) << value;
  }
  const float tie = float_of(0x3f808000u);  // between 1 and the next bf16 above
  EXPECT_EQ(BFloat16(tie).bits, 0x3f80u);
  EXPECT_EQ(split_float(tie).upper, 0x3f81u);
}

TEST(SplitFloat, ANanStaysOne) {
  for (std::uint32_t upper = 0x7f80u; upper < 0x8000u; ++upper) {
    for (const std::uint32_t lower : {1u, 0x7fffu, 0x8000u, 0xffffu}) {
      const SplitFloat halves = split_float(float_of(upper << 16 | lower));
      EXPECT_TRUE(std::isnan(joined_float(halves.upper, halves.remainder))) << upper;
      EXPECT_TRUE(std::isnan(joined_float(halves.upper, 0))) << upper;
    }
  }
}

// Magnitudes from 2^-26 on have eleven bits; smaller ones have at least the precision that Adam's
// eps needs.
TEST(HalfMoments, KeepElevenBits) {
  for (int exponent = -26; exponent < 4; ++exponent) {
    for (const double fraction : {1.0, 1.0001, 1.25, 1.4999, 1.75, 1.9999}) {
      const double value = std::ldexp(fraction, exponent);
      const auto single = static_cast<float>(value);
      EXPECT_NEAR(moment1_of_half(half_of_moment1(single)), value, value / 2048);
      EXPECT_NEAR(moment1_of_half(half_of_moment1(-single)), -value, value / 2048);
      const double square = double(single) * single;
      EXPECT_NEAR(moment2_of_half(half_of_moment2(static_cast<float>(square))),
                  square,
                  square / 1023);
    }
  }
  const double least = 0x1p-37;
  for (const float value : {1e-12f, 1e-11f, 1e-10f, 1e-9f}) {
    EXPECT_NEAR(moment1_of_half(half_of_moment1(value)), value, least);
    EXPECT_NEAR(std::sqrt(moment2_of_half(half_of_moment2(value * value))), value, 1.01 * least);
  }
}

TEST(HalfMoments, WhatIsTooLargeIsTheLargest) {
  const float most = 65504.0f / 4096;
  EXPECT_EQ(moment1_of_half(half_of_moment1(1e9f)), most);
  EXPECT_EQ(moment1_of_half(half_of_moment1(-1e9f)), -most);
  EXPECT_EQ(moment2_of_half(half_of_moment2(1e30f)), most * most);
  EXPECT_EQ(moment2_of_half(half_of_moment2(0)), 0);
  EXPECT_TRUE(std::isnan(moment1_of_half(half_of_moment1(NAN))));
}

}  // namespace narrow_numbers_test
}  // namespace weft::tensor
