// Groups of columns that are summed over: group i of all is group i mod G of row i / G. A team of
// threads takes a group: a part of a warp for narrow groups, a block for wide ones.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"

namespace weft::kernels::cuda {

inline constexpr int kTeamsThreads = 256;      // per block of several teams
inline constexpr int kMostTeamThreads = 512;   // per block that is one team
inline constexpr std::int64_t kMostPacks = 4;  // per thread, if blocks have enough threads

struct Groups {
  std::int64_t width, per_row, count;
};

inline Groups groups_of(const Tensor& rstd, std::int64_t width) {
  return {.width = width, .per_row = rstd.dim(1), .count = rstd.elements()};
}

template <typename T>
__device__ T* group_of(const Matrix<T>& x, const Groups& groups, std::int64_t i) {
  return x.row(i / groups.per_row) + i % groups.per_row * groups.width;
}

// Threads of a team for groups of `packs` packs (or what a thread takes at once). Each thread takes
// about `wanted` packs. A power of two up to a warp, or else a block.
inline int team_threads(std::int64_t packs, std::int64_t wanted) {
  if (packs > kMostPacks * kWarp) {
    const std::int64_t warps = divided_up(packs, kMostPacks * kWarp);
    return int(std::min<std::int64_t>(warps * kWarp, kMostTeamThreads));
  }
  int threads = 1;
  while (threads < kWarp && threads * wanted < packs) threads *= 2;
  return threads;
}

inline Grid teams_grid(const Groups& groups, int team) {
  if (team > kWarp) return {blocks_for(groups.count, 1), static_cast<unsigned>(team)};
  return {blocks_for(groups.count, kTeamsThreads / team), kTeamsThreads};
}

// Groups of a team in such a grid: for (round = first_round(team); round < groups.count; round +=
// round_step(team)), with group round + team_index(team). All teams of a block go the same number
// of rounds; the last ones may be without a group.
__device__ inline std::int64_t first_round(int team) {
  return std::int64_t(blockIdx.x) * (int(blockDim.x) / team);
}
__device__ inline std::int64_t round_step(int team) {
  return std::int64_t(gridDim.x) * (int(blockDim.x) / team);
}
__device__ inline int team_index(int team) { return int(threadIdx.x) / team; }
__device__ inline int team_lane(int team) { return int(threadIdx.x) % team; }

// Sum over a team, for all its threads. Every thread of the block takes part.
__device__ inline float team_sum(float x, int team) {
  if (team > kWarp) return block_sum(x);
  for (int step = team / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

}  // namespace weft::kernels::cuda
