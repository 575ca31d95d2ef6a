// Packs of rows that are read or written once: neighbouring elements of a row that a thread moves
// at once, in words of 16 bytes. A matrix whose rows do not begin at such words or do not end with
// one is taken in packs of one element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "weft/kernels/cuda/arguments.h"

namespace weft::kernels::cuda {

inline constexpr int kWordBytes = 16;

// The elements of a word.
template <typename T>
inline constexpr int kPerWord = kWordBytes / int(sizeof(T));

// N elements as they lie in memory, in parts of 4 bytes: pack[i] is element i.
template <typename T, int N>
struct StreamedPack {
  static constexpr int kWords = int(sizeof(T)) * N / kWordBytes;

  std::uint32_t parts[4 * kWords] = {};

  __device__ float operator[](int i) const {
    if constexpr (std::is_same_v<T, float>) {
      return __uint_as_float(parts[i]);
    } else {
      const std::uint32_t pair = parts[i / 2];
      return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
    }
  }
};

template <typename T>
struct StreamedPack<T, 1> {
  T part = {};

  __device__ float operator[](int) const { return load(part); }
};

template <typename T, int N>
__device__ StreamedPack<T, N> streamed(const float (&x)[N]) {
  StreamedPack<T, N> pack;
  if constexpr (N == 1) {
    store(pack.part, x[0]);
  } else if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) pack.parts[i] = __float_as_uint(x[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(x[i], x[i + 1]);
      pack.parts[i / 2] = reinterpret_cast<const std::uint32_t&>(pair);
    }
  }
  return pack;
}

// What nobody reads again soon: it leaves the caches before anything else does.
template <int N, typename T>
__device__ StreamedPack<T, N> read_once(const T* from) {
  StreamedPack<T, N> pack;
  if constexpr (N == 1) {
    pack.part = __ldcs(from);
  } else {
#pragma unroll
    for (int w = 0; w < pack.kWords; ++w) {
      const uint4 word = __ldcs(reinterpret_cast<const uint4*>(from) + w);
      pack.parts[4 * w] = word.x;
      pack.parts[4 * w + 1] = word.y;
      pack.parts[4 * w + 2] = word.z;
      pack.parts[4 * w + 3] = word.w;
    }
  }
  return pack;
}

template <typename T, int N>
__device__ uint4 word_of(const StreamedPack<T, N>& pack, int w) {
  const std::uint32_t* at = pack.parts + 4 * w;
  return {at[0], at[1], at[2], at[3]};
}

template <typename T, int N>
__device__ void write(T* to, const StreamedPack<T, N>& pack) {
  if constexpr (N == 1) {
    *to = pack.part;
  } else {
#pragma unroll
    for (int w = 0; w < pack.kWords; ++w) reinterpret_cast<uint4*>(to)[w] = word_of(pack, w);
  }
}

// More than caches keep until somebody reads it.
template <typename T, int N>
__device__ void write_past_caches(T* to, const StreamedPack<T, N>& pack) {
  if constexpr (N == 1) {
    __stcs(to, pack.part);
  } else {
#pragma unroll
    for (int w = 0; w < pack.kWords; ++w)
      __stcs(reinterpret_cast<uint4*>(to) + w, word_of(pack, w));
  }
}

template <int N, typename T>
bool in_packs_of(const Matrix<T>& x) {
  return x.columns % N == 0 && x.stride % kPerWord<T> == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data) % kWordBytes == 0;
}

// Calls body(std::integral_constant<int, N>) where all matrices have whole packs of N elements,
// else with 1.
template <int N, typename Body, typename... T>
void with_packs(Body&& body, const Matrix<T>&... matrices) {
  if ((in_packs_of<N>(matrices) && ...)) return body(std::integral_constant<int, N>{});
  body(std::integral_constant<int, 1>{});
}

}  // namespace weft::kernels::cuda
