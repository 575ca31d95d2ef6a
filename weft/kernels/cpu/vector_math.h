// fp32 functions without branches or library calls, for loops marked "omp simd", and row
// reductions made of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::kernels::cpu {

// e^x within 2 units in the last place. Results below the smallest normal number are 0; above
// the largest, infinity; NaN stays NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7 (the first term
// left out is below 2^-27 of the result), 2^n by the exponent bits, in two factors because n = 128
// has no float of its own.
inline float exp_f32(float x) {
  constexpr float kLow = -87.33654f, kHigh = 88.72284f;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // exact in 10 bits, the rest
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer

  const float inside = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  const float n = (inside * kLog2E + kRound) - kRound;
  const float r = (inside - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = static_cast<std::int32_t>(n);
  const std::int32_t half = exponent >> 1;
  const float power1 = std::bit_cast<float>((half + 127) << 23);
  const float power2 = std::bit_cast<float>((exponent - half + 127) << 23);
  const float y = p * power1 * power2;
  const float not_low = x < kLow ? 0.0f : y;
  return x > kHigh ? std::numeric_limits<float>::infinity() : not_low;
}

// 1 / (1 + e^-x).
inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

inline float largest(const float* x, std::int64_t n) {
  float best = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : best)
  for (std::int64_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// The sum of e^(x - shift), accumulated in fp32 over short runs and in fp64 across them.
inline double sum_of_exp(const float* x, std::int64_t n, float shift) {
  constexpr std::int64_t kRun = 1024;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = begin + kRun < n ? begin + kRun : n;
    float run = 0;
#pragma omp simd reduction(+ : run)
    for (std::int64_t i = begin; i < end; ++i) run += exp_f32(x[i] - shift);
    total += static_cast<double>(run);
  }
  return total;
}

// log of the sum of e^x.
inline float log_sum_exp(const float* x, std::int64_t n) {
  const float shift = largest(x, n);
  return static_cast<float>(static_cast<double>(shift) + std::log(sum_of_exp(x, n, shift)));
}

}  // namespace weft::kernels::cpu
