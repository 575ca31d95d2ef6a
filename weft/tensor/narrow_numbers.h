// 16-bit storage of optimizer state; docs/decisions/0043-a-smaller-optimizer.md gives the reasons.
#pragma once

#include <bit>
#include <cstdint>

#include "weft/tensor/dtype.h"

namespace weft::tensor {

// fp32 number split into a bf16 number and the 16 missing bits. `upper` is the number rounded to
// nearest, ties away from zero. Only the payload of a NaN is lost.
struct SplitFloat {
  std::uint16_t upper = 0;  // bits of the bf16 number
  std::int16_t remainder = 0;
};

inline SplitFloat split_float(float value) {
  const auto wide = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (wide & 0x7fffffffu) > 0x7f800000u;
  return {.upper = static_cast<std::uint16_t>((is_nan ? wide | 0x400000u : wide + 0x8000u) >> 16),
          .remainder = static_cast<std::int16_t>(is_nan ? 0u : wide & 0xffffu)};
}

inline float joined_float(std::uint16_t upper, std::int16_t remainder) {
  const auto added = static_cast<std::uint32_t>(static_cast<std::int32_t>(remainder));
  return std::bit_cast<float>((static_cast<std::uint32_t>(upper) << 16) + added);
}

// Moments in fp16 are scaled by 2^12; the second moment is stored as its root. The range covers
// gradients from 2^-36 to 16; larger ones are clamped. Each moment is stored on its own, without a
// shared scale.
inline constexpr float kHalfMomentScale = 0x1p12f;
inline constexpr float kLargestHalf = 65504;

inline Float16 bounded_half(float value) {
  const float bounded = value > kLargestHalf ? kLargestHalf : value;
  return Float16(bounded < -kLargestHalf ? -kLargestHalf : bounded);
}

inline Float16 half_of_moment1(float moment) { return bounded_half(moment * kHalfMomentScale); }
inline float moment1_of_half(Float16 half) {
  return static_cast<float>(half) * (1 / kHalfMomentScale);
}

inline Float16 half_of_moment2(float moment) { return half_of_moment1(__builtin_sqrtf(moment)); }
inline float moment2_of_half(Float16 half) {
  const float root = moment1_of_half(half);
  return root * root;
}

// Master weights in fp16 are scaled by 2^8: 11 bits for weights from 2^-22 to 256, fewer below.
// Larger ones are clamped. The bf16 weight is rounded from the stored master.
inline constexpr float kHalfMasterScale = 0x1p8f;

inline Float16 half_of_master(float master) { return bounded_half(master * kHalfMasterScale); }
inline float master_of_half(Float16 half) {
  return static_cast<float>(half) * (1 / kHalfMasterScale);
}

}  // namespace weft::tensor
