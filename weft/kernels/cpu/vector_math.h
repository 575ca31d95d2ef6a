// fp32 functions without branches or library calls, for loops marked "omp simd", and row reductions
// that use them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::kernels::cpu {

// a * b + c, rounded once if the processor has a fused instruction. Written out where bits must
// equal another device's: a compiler may contract a sum of two products in two ways.
inline float multiply_add(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// e^x within 2 units in the last place if the result is a normal number. Infinity and NaN give the
// results of std::exp.
//
// x = n ln 2 + r with |r| <= ln 2 / 2. e^r = 1 + r + r^2 Q(r). Q interpolates at the Chebyshev
// points of that interval (relative error 1e-8); its terms do not wait for each other. 2^n comes
// from exponent bits, in two factors, so that both ends of the range round correctly. The bits are
// clamped, not the float: a float comparison makes g++ split the loop into cases.
inline float exp_f32(float x) {
  constexpr std::int32_t kLimit = std::bit_cast<std::int32_t>(105.0f);  // e^x is 0 or infinity
  constexpr float kLog2E = 1.44269504f;
  // high: exact in 10 bits; low: the rest
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding 1.5 * 2^23 leaves an integer in the low bits; 254 is twice the bias of an exponent.
  constexpr float kRound = 12582912.0f + 254.0f;

  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t magnitude = bits & 0x7fffffff;
  const std::int32_t clamped = magnitude < kLimit ? magnitude : kLimit;
  const float inside = std::bit_cast<float>(clamped | (bits ^ magnitude));
  const float shifted = inside * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (inside - n * kLn2High) - n * kLn2Low;

  const float r2 = r * r;
  const float q01 = 0.5f + 0.16666577f * r;
  const float q23 = 0.041666555f + 0.0083631776f * r;
  const float q = q01 + (q23 + 0.0013926182f * r2) * r2;
  const float e = 1.0f + (r + r2 * q);

  // sum of both exponents, in the low bits
  const auto exponents = std::bit_cast<std::uint32_t>(shifted);
  const std::uint32_t half = exponents >> 1;
  const float power1 = std::bit_cast<float>(half << 23);
  const float power2 = std::bit_cast<float>((exponents - half) << 23);
  const float y = e * power1 * power2;
  return x == x ? y : x;
}

// 1 / (1 + e^-x).
inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// Maximum over four quarters at a time: a single maximum waits for the one before it.
inline float largest(const float* x, std::int64_t n) {
  const std::int64_t quarter = n / 4;
  const float *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
  float best = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : best)
  for (std::int64_t i = 0; i < quarter; ++i) {
    const float a = x[i] > x1[i] ? x[i] : x1[i];
    const float b = x2[i] > x3[i] ? x2[i] : x3[i];
    const float both = a > b ? a : b;
    best = both > best ? both : best;
  }
  for (std::int64_t i = 4 * quarter; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// Sum of e^(x - shift), accumulated in fp32 over short runs and in fp64 across them.
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
