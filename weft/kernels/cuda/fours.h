// Four neighbouring elements in one access, or in single ones where the memory is not aligned for
// that. For what is read or written once: it leaves the cache first.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/arguments.h"

namespace weft::kernels::cuda {

enum class Access { Fours, Singles };

// Of rows that begin `stride` elements apart; 0 where there is one alone.
template <typename T>
Access access_of(const T* data, std::int64_t stride = 0) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % (4 * sizeof(T)) == 0;
  return aligned && stride % 4 == 0 ? Access::Fours : Access::Singles;
}

struct FourFloats {
  float x[4];
};

template <Access access>
__device__ FourFloats load_four(const float* from) {
  if constexpr (access == Access::Singles) {
    return {{from[0], from[1], from[2], from[3]}};
  } else {
    const float4 x = __ldcs(reinterpret_cast<const float4*>(from));
    return {{x.x, x.y, x.z, x.w}};
  }
}

template <Access access>
__device__ void store_four(float* to, const FourFloats& x) {
  if constexpr (access == Access::Singles) {
    for (int j = 0; j < 4; ++j) to[j] = x.x[j];
  } else {
    __stcs(reinterpret_cast<float4*>(to), make_float4(x.x[0], x.x[1], x.x[2], x.x[3]));
  }
}

template <Access access>
__device__ void store_four(BFloat16* to, const FourFloats& x) {
  if constexpr (access == Access::Singles) {
    for (int j = 0; j < 4; ++j) store(to[j], x.x[j]);
  } else {
    union {
      __nv_bfloat162 pairs[2];
      uint2 bits;
    } both = {{__floats2bfloat162_rn(x.x[0], x.x[1]), __floats2bfloat162_rn(x.x[2], x.x[3])}};
    __stcs(reinterpret_cast<uint2*>(to), both.bits);
  }
}

// Calls body.template operator()<access>().
template <typename Body>
void with_access(Access access, const Body& body) {
  if (access == Access::Fours) {
    body.template operator()<Access::Fours>();
  } else {
    body.template operator()<Access::Singles>();
  }
}

}  // namespace weft::kernels::cuda
