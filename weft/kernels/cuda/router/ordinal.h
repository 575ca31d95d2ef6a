// Floats as integers of the same order, for selections digit by digit.
#pragma once

#include <cstdint>

namespace weft::kernels::cuda {

// A larger float has a larger ordinal, and equal floats have equal ordinals. NaN counts as
// infinity, so that there is one order. No ordinal is 0 or 2^32 - 1.
__device__ inline std::uint32_t ordinal(float x) {
  constexpr std::uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
  if (x != x) return kSign | kInfinity;
  if (x == 0) return kSign;  // zero of either sign
  const std::uint32_t bits = __float_as_uint(x);
  return bits & kSign ? ~bits : bits | kSign;
}

}  // namespace weft::kernels::cuda
