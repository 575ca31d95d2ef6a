// Scores of a router's logits.
#pragma once

#include <algorithm>
#include <cmath>

#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

// Added to a sum of scores before dividing by it.
inline constexpr float kLeastSum = 1e-20f;

// Score that depends on its own logit alone.
inline float own_score(Score score, float x) {
  if (score == Score::Sigmoid) return sigmoid_f32(x);
  return std::sqrt(std::max(x, 0.0f) + std::log1p(exp_f32(-std::abs(x))));
}

// The derivative of own_score, given its value.
inline float own_slope(Score score, float x, float value) {
  if (score == Score::Sigmoid) return value * (1.0f - value);
  return value > 0 ? sigmoid_f32(x) / (2.0f * value) : 0.0f;
}

}  // namespace weft::kernels::cpu
