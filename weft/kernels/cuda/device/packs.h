// Packs: what a thread moves at once, by default 16 bytes. Rows that are not in whole packs are
// moved by elements, and a thread has the same elements then; or they have packs of one element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "weft/kernels/cuda/device/arguments.h"

namespace weft::kernels::cuda {

enum class Access { Packs, Elements };

template <typename T>
inline constexpr int kPack = 16 / int(sizeof(T));

// Bytes of a pack that one access moves.
constexpr int word_bytes(int pack_bytes) { return pack_bytes % 16 == 0 ? 16 : pack_bytes; }

// kCount elements as bits: one, or a number that fills 8 bytes or whole words of 16. Indices are
// compile-time constants, from unrolled loops.
template <typename T, int kCount = kPack<T>>
struct Pack {
  static constexpr int kBytes = kCount * int(sizeof(T));
  using Wide = std::conditional_t<word_bytes(kBytes) == 16, uint4, uint2>;
  using Word = std::conditional_t<kCount == 1, T, Wide>;
  static constexpr int kWords = kBytes / int(sizeof(Word));
  static_assert(kWords * int(sizeof(Word)) == kBytes);

  Word words[kWords] = {};

  __device__ float operator[](int i) const {
    if constexpr (kCount == 1) {
      return load(words[0]);
    } else if constexpr (std::is_same_v<T, float>) {
      return __uint_as_float(bits()[i]);
    } else {
      const std::uint32_t pair = bits()[i / 2];
      return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
    }
  }
  // Words: the bits of a float or of two bf16. Not for a pack of one element.
  __device__ std::uint32_t* bits() { return &words[0].x; }
  __device__ const std::uint32_t* bits() const { return &words[0].x; }
};

template <typename T, int kCount>
__device__ Pack<T, kCount> packed(const float (&values)[kCount]) {
  Pack<T, kCount> pack;
  if constexpr (kCount == 1) {
    store(pack.words[0], values[0]);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.bits()[i] = __float_as_uint(values[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
      pack.bits()[i / 2] = reinterpret_cast<const std::uint32_t&>(pair);
    }
  }
  return pack;
}

template <int kCount, typename T>
__device__ Pack<T, kCount> load_pack(const T* from) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int w = 0; w < pack.kWords; ++w) {
    pack.words[w] = reinterpret_cast<const typename Pack<T, kCount>::Word*>(from)[w];
  }
  return pack;
}
// Copies by words: for an assignment the compiler keeps more registers.
template <typename T, int kCount>
__device__ void store_pack(T* to, const Pack<T, kCount>& pack) {
#pragma unroll
  for (int w = 0; w < pack.kWords; ++w) {
    __stwb(reinterpret_cast<typename Pack<T, kCount>::Word*>(to) + w, pack.words[w]);
  }
}

// Reads data that is not needed again soon: it leaves the caches first.
template <int kCount, typename T>
__device__ Pack<T, kCount> read_once(const T* from) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int w = 0; w < pack.kWords; ++w) {
    pack.words[w] = __ldcs(reinterpret_cast<const typename Pack<T, kCount>::Word*>(from) + w);
  }
  return pack;
}
// Writes data that leaves the caches before its next read.
template <typename T, int kCount>
__device__ void write_past_caches(T* to, const Pack<T, kCount>& pack) {
#pragma unroll
  for (int w = 0; w < pack.kWords; ++w) {
    __stcs(reinterpret_cast<typename Pack<T, kCount>::Word*>(to) + w, pack.words[w]);
  }
}

// Both kinds of access, by a constant.
template <Access kAccess, int kCount, typename T>
__device__ Pack<T, kCount> read_once(const T* from) {
  if constexpr (kAccess == Access::Packs) {
    return read_once<kCount>(from);
  } else {
    float values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = load(from[i]);
    return packed<T>(values);
  }
}
template <Access kAccess, typename T, int kCount>
__device__ void write_past_caches(T* to, const float (&values)[kCount]) {
  if constexpr (kAccess == Access::Packs) {
    write_past_caches(to, packed<T>(values));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) store(to[i], values[i]);
  }
}

// Stretch of a row in packs; pack p begins at element p * kPack. Loads behind its end give zero,
// stores there are dropped. Access::Packs: it ends with a whole pack.
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

// True if a pack of `count` elements may begin there.
template <typename T>
bool starts_pack(const T* data, int count = kPack<T>) {
  return reinterpret_cast<std::uintptr_t>(data) % word_bytes(count * int(sizeof(T))) == 0;
}
// True if a pack may begin every row.
template <typename T>
bool rows_start_packs(const Matrix<T>& x, int count = kPack<T>) {
  const std::int64_t bytes = x.stride * std::int64_t(sizeof(T));
  return starts_pack(x.data, count) && bytes % word_bytes(count * int(sizeof(T))) == 0;
}
// True if consecutive stretches of `width` elements are in whole packs in every row.
template <typename T>
bool in_packs(const Matrix<T>& x, std::int64_t width, int count = kPack<T>) {
  return rows_start_packs(x, count) && width % count == 0;
}

// Calls body(std::integral_constant<int, N>): N if all matrices have whole packs of N elements,
// else 1.
template <int N, typename Body, typename... T>
void with_packs(Body&& body, const Matrix<T>&... matrices) {
  if ((in_packs(matrices, matrices.columns, N) && ...)) {
    return body(std::integral_constant<int, N>{});
  }
  body(std::integral_constant<int, 1>{});
}

}  // namespace weft::kernels::cuda
