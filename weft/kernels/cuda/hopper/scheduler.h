// Tile scheduler of the grouped GEMM: the output tiles of a cluster, and their order. Both are
// fixed by the counts alone, so that each tile has one writer and the same sums in every run.
//
// A result is cut into tiles of kTileM rows. A cluster of two blocks takes two tiles below each
// other; its blocks then share their loads of b. An expert's last tile may lack a partner: a
// cluster takes it with its right neighbour. So an expert pays for fewer than kTileM rows that it
// lacks.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/gemm/product.h"

namespace weft::kernels::cuda::hopper {

// Dimension that is divided among the experts. M: rows of the result (forward, dgrad). K: what is
// summed over (wgrad).
enum class Grouped { M, K };

// Column tiles of a band. The tiles of a band run at about the same time, in a square of rows and
// columns of tiles, so that the cache holds both factors. Wgrad has wider bands: it stores longer
// rows.
template <Grouped kGrouped>
inline constexpr int kBand = kGrouped == Grouped::M ? 8 : 12;

// A grouped product, as the kernel takes it by value.
struct Problem {
  int experts = 0;
  int m = 0, n = 0, k = 0;  // the grouped one of m and k differs by expert, and is not set
  int column_tiles = 0;
  const std::int64_t* first_row = nullptr;   // (experts + 1)
  const std::int64_t* first_tile = nullptr;  // (experts + 1), of clusters; if M is grouped
  const std::int64_t* by_count = nullptr;    // (experts), most rows first; if K is grouped
  std::byte* c = nullptr;
  std::int64_t c_stride = 0;
  Write write = Write::Assign;
};

// Tiles of a cluster for an expert with `rows` rows in its result.
template <int kTileM, int kCluster>
__host__ __device__ constexpr int tiles_of(int rows, int column_tiles) {
  const int row_tiles = (rows + kTileM - 1) / kTileM;
  const int lone = row_tiles % kCluster;
  return row_tiles / kCluster * column_tiles + lone * ((column_tiles + kCluster - 1) / kCluster);
}

// One block's part of a cluster's tile. It may lie behind the last column.
struct WorkTile {
  int expert = 0;
  int first_row = 0;             // first row of the expert
  int height = 0;                // rows of the expert's result
  int depth = 0;                 // terms of a sum
  int row = 0, column_tile = 0;  // in the expert's result
  bool shares_b = true;          // true if the cluster's other block needs the same b
};

// Way of the accumulators into the result. Assign: a TMA store. Preload: the accumulators begin
// with what is there, then a TMA store. Reduce: a TMA reduction, which adds in the L2 cache.
//
// The cache adds no more than 1.2 TB/s. Long sums hide that, and preloading would keep stages from
// their k-blocks; short sums preload.
enum class Store { Assign, Preload, Reduce };
__device__ inline Store store_of(const WorkTile& tile, const Problem& problem) {
  constexpr int kShortSum = 512;
  if (problem.write == Write::Assign) return Store::Assign;
  return tile.depth <= kShortSum ? Store::Preload : Store::Reduce;
}

// Places tile `index` of the expert, whose `height` is set, for block `rank` of the cluster.
template <Grouped kGrouped, int kTileM, int kCluster>
__device__ inline void place(WorkTile& tile, int index, int column_tiles, int rank) {
  const int row_tiles = (tile.height + kTileM - 1) / kTileM;
  const int together = row_tiles / kCluster;
  const int lone = index - together * column_tiles;
  if (lone >= 0) {
    tile.row = (row_tiles - 1) * kTileM;
    tile.column_tile = lone * kCluster + rank;
    tile.shares_b = false;
    return;
  }
  const int band = index / (together * kBand<kGrouped>);
  const int first = band * kBand<kGrouped>, in_band = index - together * first;
  const int width = min(kBand<kGrouped>, column_tiles - first);
  tile.row = (in_band / width * kCluster + rank) * kTileM;
  tile.column_tile = first + in_band % width;
  tile.shares_b = true;
}

// Persistent scheduler: walks through the tiles of this block's cluster. All lanes of a warp call
// it together and get the same tile.
template <Grouped kGrouped, int kTileM, int kCluster>
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const Problem& problem)
      : problem_(problem), index_(int(blockIdx.x) / kCluster), rank_(int(blockIdx.x) % kCluster) {
    if constexpr (kGrouped == Grouped::M) {
      tiles_ = int(problem.first_tile[problem.experts]);
    } else {
      per_expert_ = tiles_of<kTileM, kCluster>(problem.m, problem.column_tiles);
      tiles_ = problem.experts * per_expert_;
    }
  }

  __device__ int rank() const { return rank_; }

  // False: no tiles are left.
  __device__ bool next(WorkTile& tile) {
    if (index_ >= tiles_) return false;
    int first_tile = 0;
    if constexpr (kGrouped == Grouped::M) {
      find_expert();
      first_tile = int(problem_.first_tile[expert_]);
    } else {
      expert_ = int(problem_.by_count[index_ / per_expert_]);
      first_tile = index_ / per_expert_ * per_expert_;
    }
    tile.expert = expert_;
    tile.first_row = int(problem_.first_row[expert_]);
    const int rows = int(problem_.first_row[expert_ + 1]) - tile.first_row;
    tile.height = kGrouped == Grouped::M ? rows : problem_.m;
    tile.depth = kGrouped == Grouped::M ? problem_.k : rows;
    place<kGrouped, kTileM, kCluster>(tile, index_ - first_tile, problem_.column_tiles, rank_);
    index_ += int(gridDim.x) / kCluster;
    return true;
  }

 private:
  // Finds the last expert whose tiles begin at or before index_. The search goes on from the last
  // one found, 32 experts at a time.
  __device__ void find_expert() {
    const int lane = int(threadIdx.x) % 32;
    for (int passed = 32; passed == 32; expert_ += passed) {
      const int e = expert_ + 1 + lane;
      const bool before = e < problem_.experts && problem_.first_tile[e] <= index_;
      passed = __popc(__ballot_sync(0xffffffffu, before));
    }
  }

  const Problem& problem_;
  int index_, rank_;
  int tiles_ = 0, per_expert_ = 0, expert_ = 0;
};

}  // namespace weft::kernels::cuda::hopper
