// Exclusive scan over the threads of a block. Every thread of the block must take part.
#pragma once

#include "weft/kernels/cuda/device/block_sums.h"

namespace weft::kernels::cuda {

template <typename T>
struct Scanned {
  T before;  // sum of the threads before this one
  T total;   // sum of all threads
};

// Requires blockDim.x to be a multiple of 32 and the only dimension. May be called again at once.
template <typename T>
__device__ Scanned<T> block_scan(T x) {
  __shared__ T parts[kWarp];
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  T sum = x;
  for (int step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == kWarp - 1) parts[warp] = sum;
  __syncthreads();
  T before = sum - x, total = 0;
  for (int w = 0; w < int(blockDim.x) / kWarp; ++w) {
    if (w < warp) before += parts[w];
    total += parts[w];
  }
  __syncthreads();
  return {before, total};
}

}  // namespace weft::kernels::cuda
