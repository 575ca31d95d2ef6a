// Sums and maxima over the threads of a warp and of a block. Their order depends on the number of
// threads alone. Every thread of the warp or block must take part, and all get the result.
#pragma once

#include <cstdint>

namespace weft::kernels::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

template <typename T>
__device__ T warp_sum(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

template <typename T>
__device__ T warp_max(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, x, step);
    x = other > x ? other : x;
  }
  return x;
}

// Requires blockDim.x to be a multiple of 32 and the only dimension. May be called again at once.
template <typename T>
__device__ T block_sum(T x) {
  __shared__ T parts[kWarp];
  const int warps = int(blockDim.x) / kWarp;
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  T total = parts[0];
  for (int w = 1; w < warps; ++w) total += parts[w];
  __syncthreads();
  return total;
}

template <typename T>
__device__ T block_max(T x) {
  __shared__ T parts[kWarp];
  const int warps = int(blockDim.x) / kWarp;
  x = warp_max(x);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  T total = parts[0];
  for (int w = 1; w < warps; ++w) total = parts[w] > total ? parts[w] : total;
  __syncthreads();
  return total;
}

}  // namespace weft::kernels::cuda
