// State of the optimizer in memory, in fp32 or in 16 bits (tensor/narrow_numbers.h). A thread reads
// and writes one of its numbers, or four neighbours.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "weft/kernels/cuda/device/packs.h"
#include "weft/tensor/narrow_numbers.h"

namespace weft::kernels::cuda {

enum class MomentForm { Fp32, Bf16, Fp16 };
enum class WhichMoment { First, Second };
enum class MasterForm { Whole, Half, Remainder };

struct OptimizerState {
  BFloat16* rounded = nullptr;         // bf16 weights; nullptr: the master is the weights
  float* w = nullptr;                  // MasterForm::Whole
  std::uint16_t* half = nullptr;       // MasterForm::Half
  std::uint16_t* remainder = nullptr;  // MasterForm::Remainder: `rounded` is the other half
  void *m = nullptr, *v = nullptr;     // float, or std::uint16_t
  const float* g = nullptr;            // nullptr: the gradients are bf16
  const BFloat16* narrow_g = nullptr;
};

// True if four of each may be moved at once.
inline bool starts_fours(const OptimizerState& s, int first_bytes, int second_bytes) {
  const auto starts = [](const void* data, int bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % std::uintptr_t(4 * bytes) == 0;
  };
  return starts(s.w, 4) && starts(s.g, 4) && starts(s.narrow_g, 2) && starts(s.m, first_bytes) &&
         starts(s.v, second_bytes) && starts(s.rounded, 2) && starts(s.half, 2) &&
         starts(s.remainder, 2);
}

__device__ inline float half_value(std::uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
__device__ inline std::uint32_t bits_of_half(float value) {
  const float most = tensor::kLargestHalf;
  const float bounded = value > most ? most : value;
  return __half_as_ushort(__float2half_rn(bounded < -most ? -most : bounded));
}

// Moment of 16 bits.
template <MomentForm kForm, WhichMoment kWhich>
__device__ float moment_value(std::uint32_t bits) {
  if constexpr (kForm == MomentForm::Bf16) {
    return __uint_as_float(bits << 16);
  } else {
    const float scaled = half_value(bits) * (1 / tensor::kHalfMomentScale);
    if constexpr (kWhich == WhichMoment::First) {
      return scaled;
    } else {
      return scaled * scaled;
    }
  }
}
template <MomentForm kForm, WhichMoment kWhich>
__device__ std::uint32_t moment_bits(float value) {
  if constexpr (kForm == MomentForm::Bf16) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  } else if constexpr (kWhich == WhichMoment::First) {
    return bits_of_half(value * tensor::kHalfMomentScale);
  } else {
    return bits_of_half(sqrtf(value) * tensor::kHalfMomentScale);
  }
}

// Master weight from its two halves, and back: rounded to nearest, a tie away from zero.
__device__ inline float joined_master(std::uint32_t upper, std::uint32_t remainder) {
  const int added = static_cast<short>(remainder);
  return __uint_as_float((upper << 16) + static_cast<std::uint32_t>(added));
}
__device__ inline std::uint32_t upper_half(float value) {
  const std::uint32_t wide = __float_as_uint(value);
  return ((wide & 0x7fffffffu) > 0x7f800000u ? wide | 0x400000u : wide + 0x8000u) >> 16;
}
__device__ inline std::uint32_t lower_half(float value) {
  const std::uint32_t wide = __float_as_uint(value);
  return (wide & 0x7fffffffu) > 0x7f800000u ? 0u : wide & 0xffffu;
}

// Master weight in fp16.
__device__ inline float half_master_value(std::uint32_t bits) {
  return half_value(bits) * (1 / tensor::kHalfMasterScale);
}
__device__ inline std::uint32_t half_master_bits(float value) {
  return bits_of_half(value * tensor::kHalfMasterScale);
}

// kCount neighbours: four, or one.
template <Access kAccess, int kCount>
__device__ void read_numbers(float (&values)[kCount], const float* from) {
  if constexpr (kCount == 1) {
    values[0] = *from;
  } else {
    const Pack<float, kCount> pack = read_once<kAccess, kCount>(from);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values[j] = pack[j];
  }
}
template <Access kAccess, int kCount, typename T>
__device__ void write_numbers(T* to, const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    store(*to, values[0]);
  } else {
    write_past_caches<kAccess>(to, values);
  }
}

// kCount numbers of 16 bits, as bits.
template <Access kAccess, int kCount>
__device__ void read_halves(std::uint32_t (&bits)[kCount], const std::uint16_t* from) {
  if constexpr (kAccess == Access::Packs && kCount == 4) {
    const uint2 word = __ldcs(reinterpret_cast<const uint2*>(from));
    bits[0] = word.x & 0xffffu;
    bits[1] = word.x >> 16;
    bits[2] = word.y & 0xffffu;
    bits[3] = word.y >> 16;
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) bits[j] = from[j];
  }
}
template <Access kAccess, int kCount>
__device__ void write_halves(std::uint16_t* to, const std::uint32_t (&bits)[kCount]) {
  if constexpr (kAccess == Access::Packs && kCount == 4) {
    const uint2 word = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
    __stcs(reinterpret_cast<uint2*>(to), word);
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = static_cast<std::uint16_t>(bits[j]);
  }
}

// Branches on the format. All threads of a kernel take the same way.
template <Access kAccess, int kCount>
__device__ void read_gradients(float (&values)[kCount], const OptimizerState& s, std::int64_t i) {
  if (s.g != nullptr) return read_numbers<kAccess>(values, s.g + i);
  std::uint32_t bits[kCount];
  read_halves<kAccess>(bits, reinterpret_cast<const std::uint16_t*>(s.narrow_g) + i);
#pragma unroll
  for (int j = 0; j < kCount; ++j) values[j] = __uint_as_float(bits[j] << 16);
}

template <Access kAccess, MomentForm kForm, WhichMoment kWhich, int kCount>
__device__ void read_moment(float (&values)[kCount], const void* from, std::int64_t i) {
  if constexpr (kForm == MomentForm::Fp32) {
    read_numbers<kAccess>(values, static_cast<const float*>(from) + i);
  } else {
    std::uint32_t bits[kCount];
    read_halves<kAccess>(bits, static_cast<const std::uint16_t*>(from) + i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values[j] = moment_value<kForm, kWhich>(bits[j]);
  }
}
template <Access kAccess, MomentForm kForm, WhichMoment kWhich, int kCount>
__device__ void write_moment(void* to, std::int64_t i, const float (&values)[kCount]) {
  if constexpr (kForm == MomentForm::Fp32) {
    write_numbers<kAccess>(static_cast<float*>(to) + i, values);
  } else {
    std::uint32_t bits[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) bits[j] = moment_bits<kForm, kWhich>(values[j]);
    write_halves<kAccess>(static_cast<std::uint16_t*>(to) + i, bits);
  }
}

template <Access kAccess, MasterForm kForm, int kCount>
__device__ void read_masters(float (&values)[kCount], const OptimizerState& s, std::int64_t i) {
  if constexpr (kForm == MasterForm::Whole) {
    read_numbers<kAccess>(values, s.w + i);
  } else if constexpr (kForm == MasterForm::Half) {
    std::uint32_t bits[kCount];
    read_halves<kAccess>(bits, s.half + i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values[j] = half_master_value(bits[j]);
  } else {
    std::uint32_t uppers[kCount], remainders[kCount];
    read_halves<kAccess>(uppers, reinterpret_cast<const std::uint16_t*>(s.rounded) + i);
    read_halves<kAccess>(remainders, s.remainder + i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) values[j] = joined_master(uppers[j], remainders[j]);
  }
}
template <Access kAccess, MasterForm kForm, int kCount>
__device__ void write_masters(const OptimizerState& s,
                              std::int64_t i,
                              const float (&values)[kCount]) {
  if constexpr (kForm == MasterForm::Whole) {
    write_numbers<kAccess>(s.w + i, values);
    if (s.rounded != nullptr) write_numbers<kAccess>(s.rounded + i, values);
  } else if constexpr (kForm == MasterForm::Half) {
    std::uint32_t bits[kCount];
    float kept[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      bits[j] = half_master_bits(values[j]);
      kept[j] = half_master_value(bits[j]);
    }
    write_halves<kAccess>(s.half + i, bits);
    write_numbers<kAccess>(s.rounded + i, kept);
  } else {
    std::uint32_t uppers[kCount], remainders[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      uppers[j] = upper_half(values[j]);
      remainders[j] = lower_half(values[j]);
    }
    write_halves<kAccess>(reinterpret_cast<std::uint16_t*>(s.rounded) + i, uppers);
    write_halves<kAccess>(s.remainder + i, remainders);
  }
}

}  // namespace weft::kernels::cuda
