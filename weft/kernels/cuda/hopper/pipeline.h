// Shared memory of a block, and the pipeline of its stages. The producer waits until a stage is
// empty and fills it by TMA; the consumers wait until it is full and multiply.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper/barriers.h"
#include "weft/kernels/cuda/hopper/traits.h"

namespace weft::kernels::cuda::hopper {

struct TensorMaps {
  CUtensorMap a, b, c;
};

template <typename T>
struct SharedStorage {
  std::byte a[T::kStages][T::kBoxesOfA * kBoxBytes];
  std::byte b[T::kStages][T::kBoxesOfB * kBoxBytes];
  std::byte epilogue[kConsumers][T::kEpilogueBoxes][kBoxBytes];
  Barrier full[T::kStages];   // the bytes of both factors are there
  Barrier empty[T::kStages];  // the reading warps of all blocks of the cluster are done
  // Ping-pong barriers of a consumer, at which the other consumer arrives.
  Barrier issued[kConsumers];        // it has issued all wgmmas of its tile
  Barrier last_k_block[kConsumers];  // it has its last k-block
};

// Stage of a pipeline, and the parity of its phase.
template <int kStages>
struct PipelineState {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ __forceinline__ void skip(int stages) {
    const int at = stage + stages;
    stage = at % kStages;
    phase ^= std::uint32_t(at / kStages) & 1;
  }
};

template <typename T>
__device__ bool is_nothing(const WorkTile& tile, const Problem& problem) {
  return T::kGrouped == Grouped::K && tile.depth == 0 && problem.write == Write::Accumulate;
}
template <typename T>
__device__ int k_blocks_of(const WorkTile& tile) {
  return (tile.depth + T::kTile.k - 1) / T::kTile.k;
}
// Stages that bring the accumulators of a tile, before its k-blocks.
template <typename T>
__device__ int preloads_of(const WorkTile& tile, const Problem& problem) {
  if (T::kGrouped == Grouped::M || tile.depth == 0) return 0;
  return store_of(tile, problem) == Store::Preload ? T::kPreloads : 0;
}
// Stages that a tile takes.
template <typename T>
__device__ int stages_of(const WorkTile& tile, const Problem& problem) {
  return preloads_of<T>(tile, problem) + k_blocks_of<T>(tile);
}

// Releases a stage to the producers of all blocks of the cluster. One warp calls it.
template <typename T>
__device__ __forceinline__ void release_stage(SharedStorage<T>& shared, int stage, int lane) {
  if (lane < T::kTile.cluster) mbarrier_arrive_cluster(shared.empty[stage], lane);
}

}  // namespace weft::kernels::cuda::hopper
