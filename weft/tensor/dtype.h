// Element types and their sizes.
#pragma once

#include <bit>
#include <cstdint>

#include "weft/base/dtype.h"

namespace weft::tensor {

using base::DType;
using base::name_of;
using base::size_of;

// Upper half of an fp32. Conversion from float rounds to nearest even and keeps NaN a NaN.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = wide + 0x7fffu + ((wide >> 16) & 1u);
    const bool is_nan = (wide & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (wide >> 16) | 0x40u : rounded >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

// IEEE half precision. Conversion from float rounds to nearest even; large numbers become infinite,
// and NaN stays NaN. Branch-free, so that loops vectorise.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (wide >> 16) & 0x8000u, size = wide & 0x7fffffffu;
    // Below 2^-14 halves are multiples of 2^-24, and so are floats from 1/2 to 1.
    const float above_half = std::bit_cast<float>(size) + 0.5f;
    const std::uint32_t small = std::bit_cast<std::uint32_t>(above_half) - 0x3f000000u;
    const std::uint32_t usual = (size + 0xfffu + ((size >> 13) & 1u) - (112u << 23)) >> 13;
    std::uint32_t rounded = size < (113u << 23) ? small : usual;
    rounded = size >= 0x477ff000u ? 0x7c00u : rounded;  // 65520 and more
    rounded = size > 0x7f800000u ? 0x7e00u : rounded;
    bits = static_cast<std::uint16_t>(sign | rounded);
  }
  explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
    const float small = static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f;
    const std::uint32_t special = size >= 0x7c00u ? 112u << 23 : 0u;
    const std::uint32_t usual = (size << 13) + (112u << 23) + special;
    const std::uint32_t found = size < 0x400u ? std::bit_cast<std::uint32_t>(small) : usual;
    return std::bit_cast<float>(sign | found);
  }
};

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BF16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::F16;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::I16;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::I32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::I64;
};

}  // namespace weft::tensor
