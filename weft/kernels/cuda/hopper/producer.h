// The producer: one warp that loads k-blocks by TMA, as far ahead as stages are empty, also those
// of the tiles to come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper/pipeline.h"
#include "weft/kernels/cuda/hopper/tma.h"

namespace weft::kernels::cuda::hopper {

// Fills stages for one tile. One load brings a factor, or half of it: small loads cost as much.
template <typename T>
struct StageLoader {
  SharedStorage<T>& shared;
  const TensorMaps& maps;
  const WorkTile& tile;
  int rank;  // index of the block in its cluster

  __device__ void load_a(int stage, int depth) const {
    Coordinates at{depth, tile.first_row + tile.row, 0, 0};
    if constexpr (T::kA == SumOver::Rows) {
      at = {0, tile.first_row + depth, tile.row / kBoxColumns, 0};
    }
    tma_load(shared.a[stage], maps.a, at, shared.full[stage]);
  }
  __device__ void load_b(int stage, int depth, int half, bool multicast) const {
    const int column = tile.column_tile * T::kTile.n;
    Coordinates at{depth, column + half * (T::kTile.n / 2), 0, tile.expert};
    if constexpr (T::kB == SumOver::Rows) {
      at = {0, depth + half * T::kHalfDepth, column / kBoxColumns, tile.expert};
    }
    if constexpr (T::kGrouped == Grouped::K) {
      at.row += tile.first_row;
      at.matrix = 0;
    }
    std::byte* to = shared.b[stage] + half * T::kHalfOfB;
    if (multicast) {
      tma_load_multicast(to, maps.b, at, shared.full[stage], (1 << T::kTile.cluster) - 1);
    } else {
      tma_load(to, maps.b, at, shared.full[stage]);
    }
  }
  // Loads kPreloadColumns columns of the result: the upper 64 rows in place of a, the lower 64 in
  // place of b.
  __device__ void preload(int stage, int part) const {
    mbarrier_arrive_expect_tx(shared.full[stage], 2 * T::kPreloadBoxes * kBoxBytes);
#pragma unroll
    for (int box = 0; box < T::kPreloadBoxes; ++box) {
      Coordinates at{
          tile.column_tile * T::kTile.n + part * T::kPreloadColumns + box * kBoxColumns32,
          tile.row,
          0,
          tile.expert};
      tma_load(shared.a[stage] + box * kBoxBytes, maps.c, at, shared.full[stage]);
      at.row += kBoxRows;
      tma_load(shared.b[stage] + box * kBoxBytes, maps.c, at, shared.full[stage]);
    }
  }
  // Loads the k-block at `depth`.
  __device__ void load(int stage, int depth) const {
    mbarrier_arrive_expect_tx(shared.full[stage], T::kStageBytes);
    const bool shares_b = T::kTile.cluster > 1 && tile.shares_b;
    load_a(stage, depth);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!shares_b || half == rank) load_b(stage, depth, half, shares_b);
    }
  }
};

template <typename T>
__device__ void produce(SharedStorage<T>& shared, const TensorMaps& maps, const Problem& problem) {
  TileScheduler<T::kGrouped, T::kTile.m, T::kTile.cluster> scheduler(problem);
  PipelineState<T::kStages> state;
  WorkTile tile;
  while (scheduler.next(tile)) {
    const StageLoader<T> loader{shared, maps, tile, scheduler.rank()};
    if (threadIdx.x % 32 == 0) {
      for (int part = 0; part < preloads_of<T>(tile, problem); ++part, state.advance()) {
        mbarrier_wait(shared.empty[state.stage], state.phase ^ 1);
        loader.preload(state.stage, part);
      }
      for (int k_block = 0; k_block < k_blocks_of<T>(tile); ++k_block, state.advance()) {
        mbarrier_wait(shared.empty[state.stage], state.phase ^ 1);
        loader.load(state.stage, k_block * T::kTile.k);
      }
    }
    __syncwarp();
  }
}

}  // namespace weft::kernels::cuda::hopper
