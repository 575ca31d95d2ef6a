// Work by warps: a warp takes a row, its lanes the elements of the row.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/block_sums.h"

namespace weft::kernels::cuda {

// Blocks have one dimension.
__device__ inline int lane() { return int(threadIdx.x) % kWarp; }
__device__ inline unsigned lanes_below() { return (1u << lane()) - 1; }

// Rows of a warp: for (t = first_warp(); t < rows; t += warp_step()).
__device__ inline std::int64_t first_warp() {
  return (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
}
__device__ inline std::int64_t warp_step() {
  return std::int64_t(gridDim.x) * (blockDim.x / kWarp);
}

}  // namespace weft::kernels::cuda
