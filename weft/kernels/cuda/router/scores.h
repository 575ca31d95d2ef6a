// Scores of a router's logits; see cpu/moe/scores.h.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cuda {

// Added to sums of scores before a division by them.
inline constexpr float kLeastSum = 1e-20f;

__device__ inline float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

// Scores that are functions of one logit.
__device__ inline float own_score(Score score, float x) {
  if (score == Score::Sigmoid) return logistic(x);
  return sqrtf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))));
}

// Derivative of own_score, given its value.
__device__ inline float own_slope(Score score, float x, float value) {
  if (score == Score::Sigmoid) return value * (1.0f - value);
  return value > 0 ? logistic(x) / (2.0f * value) : 0.0f;
}

// log of the sum of e^x over a row, by one warp. Every lane gets it.
__device__ inline float warp_log_sum_exp(const float* x, std::int64_t n) {
  float shift = __int_as_float(0xff800000);  // -infinity
  for (std::int64_t e = lane(); e < n; e += kWarp) shift = x[e] > shift ? x[e] : shift;
  shift = warp_max(shift);
  double sum = 0;
  for (std::int64_t e = lane(); e < n; e += kWarp) sum += double(expf(x[e] - shift));
  return float(double(shift) + log(warp_sum(sum)));
}

}  // namespace weft::kernels::cuda
