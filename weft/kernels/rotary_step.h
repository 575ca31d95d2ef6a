// Angle steps of a rotary embedding. YaRN (arXiv:2309.00071) keeps the angle of fast pairs. It
// divides the angle of pairs that never complete a turn by the factor, and blends between. The host
// computes the steps for every device, so that all devices use the same angles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "weft/kernels/kernels.h"

namespace weft::kernels {

// Pair (not a whole number) that makes `turns` turns over the original positions.
inline double pair_that_turns(double turns, double pairs, const Yarn& yarn, double base) {
  return pairs * std::log(yarn.original_positions / (turns * 2 * std::numbers::pi)) /
         std::log(base);
}

// Stretched share of pair i: 0 for fast pairs, 1 for slow ones.
inline double stretched(double i, double pairs, const Yarn& yarn, double base) {
  const double low = std::max(0.0, std::floor(pair_that_turns(yarn.beta_fast, pairs, yarn, base)));
  double high =
      std::min(2 * pairs - 1, std::ceil(pair_that_turns(yarn.beta_slow, pairs, yarn, base)));
  if (high == low) high += 0.001;
  return std::clamp((i - low) / (high - low), 0.0, 1.0);
}

// Angle that a pair turns from one position to the next; `half`: number of pairs.
inline double rotary_step(std::int64_t pair, std::int64_t half, const RotaryAngles& angles) {
  const auto i = static_cast<double>(pair), pairs = static_cast<double>(half);
  const double plain = std::pow(angles.base, -i / pairs);
  if (!angles.yarn) return plain;
  const double share = stretched(i, pairs, *angles.yarn, angles.base);
  return plain * (1 - share + share / angles.yarn->factor);
}

}  // namespace weft::kernels
