// Elements in packs, by default of 16 bytes: what a thread moves at once. Rows that do not lie in
// whole packs are moved an element at a time, and a thread has the same elements then: the way of
// access changes no bit of a result.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/arguments.h"

namespace weft::kernels::cuda {

enum class Access { Packs, Elements };

template <typename T>
inline constexpr int kPack = 16 / int(sizeof(T));

// kCount elements as their bits. An index is known at compile time, in a loop that is unrolled.
template <typename T, int kCount = kPack<T>>
struct alignas(kCount * sizeof(T)) Pack {
  std::uint32_t words[kCount * sizeof(T) / sizeof(std::uint32_t)];

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return __uint_as_float(words[i]);
    } else {
      return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
    }
  }
};

template <typename T, int kCount>
__device__ Pack<T, kCount> packed(const float (&values)[kCount]) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int word = 0; word < int(sizeof(pack) / sizeof(std::uint32_t)); ++word) {
    if constexpr (sizeof(T) == sizeof(float)) {
      pack.words[word] = __float_as_uint(values[word]);
    } else {
      const __nv_bfloat162 two = __floats2bfloat162_rn(values[2 * word], values[2 * word + 1]);
      pack.words[word] = *reinterpret_cast<const std::uint32_t*>(&two);
    }
  }
  return pack;
}

template <int kCount, typename T>
__device__ Pack<T, kCount> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kCount>*>(from);
}
// As one word: the compiler cuts what is assigned through a pointer into its members.
template <typename T, int kCount>
__device__ void store_pack(T* to, const Pack<T, kCount>& pack) {
  static_assert(sizeof(pack) == sizeof(uint4) || sizeof(pack) == sizeof(uint2));
  if constexpr (sizeof(pack) == sizeof(uint4)) {
    __stwb(reinterpret_cast<uint4*>(to),
           make_uint4(pack.words[0], pack.words[1], pack.words[2], pack.words[3]));
  } else {
    __stwb(reinterpret_cast<uint2*>(to), make_uint2(pack.words[0], pack.words[1]));
  }
}

// A stretch of a row in packs, pack p from element p * kPack on. What is loaded behind its end is
// zero, what is stored there is dropped. Access::Packs: it ends with a whole pack.
template <Access kAccess, typename T>
struct Stretch {
  T* data;
  std::int64_t width;

  __device__ Pack<T> load(std::int64_t p) const {
    const std::int64_t first = p * kPack<T>;
    if constexpr (kAccess == Access::Packs) {
      return first < width ? load_pack<kPack<T>>(data + first) : Pack<T>{};
    } else {
      float values[kPack<T>];
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) {
        values[i] = first + i < width ? cuda::load(data[first + i]) : 0.0f;
      }
      return packed<T>(values);
    }
  }

  __device__ void store(std::int64_t p, const float (&values)[kPack<T>]) const {
    const std::int64_t first = p * kPack<T>;
    if constexpr (kAccess == Access::Packs) {
      if (first < width) store_pack(data + first, packed<T>(values));
    } else {
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) {
        if (first + i < width) cuda::store(data[first + i], values[i]);
      }
    }
  }
};

template <typename T>
bool starts_pack(const T* data, int bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(data) % std::uintptr_t(bytes) == 0;
}
// Whether stretches of `width` elements, one behind another in every row, lie in whole packs.
template <typename T>
bool in_packs(const Matrix<T>& x, std::int64_t width) {
  return starts_pack(x.data) && x.stride % kPack<T> == 0 && width % kPack<T> == 0;
}

}  // namespace weft::kernels::cuda
