// Floats as integers of the same order, for selections that look at one digit after the other.
#pragma once

#include <cstdint>

namespace weft::kernels::cuda {

// A larger float has a larger ordinal, and equal ones have equal ordinals. NaN is taken for
// infinity: any place does, but there must be one order. Neither 0 nor 2^32 - 1 is one.
__device__ inline std::uint32_t ordinal(float x) {
  constexpr std::uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
  if (x != x) return kSign | kInfinity;
  if (x == 0) return kSign;  // of both signs
  const std::uint32_t bits = __float_as_uint(x);
  return bits & kSign ? ~bits : bits | kSign;
}

}  // namespace weft::kernels::cuda
