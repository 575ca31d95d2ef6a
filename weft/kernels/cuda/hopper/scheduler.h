// Which tiles of the experts' products a cluster of blocks computes, in which order: fixed by the
// counts alone, so that each tile has one writer and the same sums in every run.
//
// A result is cut into tiles of kTileRows rows. Two below each other go to a cluster of two blocks,
// which then load each other's half of b; a last one without a partner goes to it with its right
// neighbour. So an expert pays for 128 rows at most that it does not have, never for 256.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/gemm/product.h"

namespace weft::kernels::cuda::hopper {

// Whether an expert's rows are those of the result (forward, dgrad), or what it sums over (wgrad).
enum class Grouped { Rows, Sums };

inline constexpr int kTileRows = 128;
// Columns of tiles that are computed at about the same time: then as many rows of tiles as columns
// are under way, and both factors are read from the cache. Sums are written in longer rows.
template <Grouped kGrouped>
inline constexpr int kBand = kGrouped == Grouped::Rows ? 8 : 12;

struct Work {
  int experts = 0;
  int m = 0, n = 0, k = 0;  // one of m and k is the rows of an expert, and not set
  int column_tiles = 0;
  const std::int64_t* first_row = nullptr;   // (experts + 1)
  const std::int64_t* first_tile = nullptr;  // (experts + 1), of clusters; where rows are grouped
  const std::int64_t* by_count = nullptr;    // (experts), most rows first; where sums are grouped
  std::byte* c = nullptr;
  std::int64_t c_stride = 0;
  Write write = Write::Assign;
};

// Tiles of a cluster for an expert with so many rows in its result.
template <int kBlocks>
__host__ __device__ constexpr int tiles_of(int rows, int column_tiles) {
  const int row_tiles = (rows + kTileRows - 1) / kTileRows;
  const int lone = row_tiles % kBlocks;
  return row_tiles / kBlocks * column_tiles + lone * ((column_tiles + kBlocks - 1) / kBlocks);
}

// One block's part of a cluster's tile; it may lie behind the last column.
struct Tile {
  int expert = 0;
  int first_row = 0;             // of the expert
  int height = 0;                // rows of the expert's result
  int depth = 0;                 // what is summed over
  int row = 0, column_tile = 0;  // in the expert's result
  bool shares_b = true;          // with the cluster's other block
};

// How the sums of a tile get to where they belong. What is there already is what short sums begin
// with; long ones are added to it by the cache, which takes no more than 1.2 TB/s: the products of
// a long sum hide that, and what is there would be in the way of their factors.
enum class Put { Write, WriteWithOld, AddInCache };
__device__ inline Put put_of(const Tile& tile, const Work& work) {
  constexpr int kShortSum = 512;
  if (work.write == Write::Assign) return Put::Write;
  return tile.depth <= kShortSum ? Put::WriteWithOld : Put::AddInCache;
}

// The tile `index` of the expert, whose `height` is set, for block `rank` of the cluster.
template <Grouped kGrouped, int kBlocks>
__device__ inline void place(Tile& tile, int index, int column_tiles, int rank) {
  const int row_tiles = (tile.height + kTileRows - 1) / kTileRows;
  const int together = row_tiles / kBlocks;
  const int lone = index - together * column_tiles;
  if (lone >= 0) {
    tile.row = (row_tiles - 1) * kTileRows;
    tile.column_tile = lone * kBlocks + rank;
    tile.shares_b = false;
    return;
  }
  const int band = index / (together * kBand<kGrouped>);
  const int first = band * kBand<kGrouped>, in_band = index - together * first;
  const int width = min(kBand<kGrouped>, column_tiles - first);
  tile.row = (in_band / width * kBlocks + rank) * kTileRows;
  tile.column_tile = first + in_band % width;
  tile.shares_b = true;
}

// Walks through the tiles of this block's cluster. All lanes of a warp call it together and get the
// same.
template <Grouped kGrouped, int kBlocks>
class Walk {
 public:
  __device__ explicit Walk(const Work& work)
      : work_(work), index_(int(blockIdx.x) / kBlocks), rank_(int(blockIdx.x) % kBlocks) {
    if constexpr (kGrouped == Grouped::Rows) {
      tiles_ = int(work.first_tile[work.experts]);
    } else {
      per_expert_ = tiles_of<kBlocks>(work.m, work.column_tiles);
      tiles_ = work.experts * per_expert_;
    }
  }

  __device__ int rank() const { return rank_; }

  // False where there are no more.
  __device__ bool next(Tile& tile) {
    if (index_ >= tiles_) return false;
    int first_tile = 0;
    if constexpr (kGrouped == Grouped::Rows) {
      find_expert();
      first_tile = int(work_.first_tile[expert_]);
    } else {
      expert_ = int(work_.by_count[index_ / per_expert_]);
      first_tile = index_ / per_expert_ * per_expert_;
    }
    tile.expert = expert_;
    tile.first_row = int(work_.first_row[expert_]);
    const int rows = int(work_.first_row[expert_ + 1]) - tile.first_row;
    tile.height = kGrouped == Grouped::Rows ? rows : work_.m;
    tile.depth = kGrouped == Grouped::Rows ? work_.k : rows;
    place<kGrouped, kBlocks>(tile, index_ - first_tile, work_.column_tiles, rank_);
    index_ += int(gridDim.x) / kBlocks;
    return true;
  }

 private:
  // The last whose tiles begin at or before index_, looked for from the last one found: 32 at once.
  __device__ void find_expert() {
    const int lane = int(threadIdx.x) % 32;
    for (int passed = 32; passed == 32; expert_ += passed) {
      const int e = expert_ + 1 + lane;
      const bool before = e < work_.experts && work_.first_tile[e] <= index_;
      passed = __popc(__ballot_sync(0xffffffffu, before));
    }
  }

  const Work& work_;
  int index_, rank_;
  int tiles_ = 0, per_expert_ = 0, expert_ = 0;
};

}  // namespace weft::kernels::cuda::hopper
