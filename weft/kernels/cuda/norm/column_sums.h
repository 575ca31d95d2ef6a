// Sums over rows per column, for weight gradients of norms. Parts of the rows are summed first,
// then added in a fixed order.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/norm/groups.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cuda {

inline constexpr int kSumThreads = 256;

// Block that sums a part of the groups over a tile of their columns. `across` threads have a pack
// each (or what a thread takes at once); `down` is the number of runs of groups.
struct ColumnSums {
  std::int64_t groups_per_part = 0, parts = 0, tiles = 0;
  int across = 1;

  int down() const { return kSumThreads / across; }
  dim3 blocks() const { return {static_cast<unsigned>(tiles), static_cast<unsigned>(parts)}; }
  dim3 threads() const { return {static_cast<unsigned>(across), static_cast<unsigned>(down())}; }
};
ColumnSums column_sums(const Groups& groups, std::int64_t packs);

// Sum of parts[i, c] over all i, added to dw[c] or assigned to it.
void add_parts(cudaStream_t,
               float* dw,
               const float* parts,
               std::int64_t count,
               std::int64_t width,
               Write write);

// Groups of a thread: for (i = part.first; i < part.end; i += part.step).
struct PartOfGroups {
  std::int64_t first, end, step;
};
__device__ inline PartOfGroups part_of(const Groups& groups, std::int64_t groups_per_part) {
  const std::int64_t begin = std::int64_t(blockIdx.y) * groups_per_part;
  return {.first = begin + threadIdx.y,
          .end = min(groups.count, begin + groups_per_part),
          .step = blockDim.y};
}

// Sums of kCount columns over the runs of a block, in order. Threads with threadIdx.y == 0 get
// them. `runs` is shared memory of kSumThreads * kCount.
template <int kCount>
__device__ void add_runs(float (&sums)[kCount], float* runs) {
  const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int i = 0; i < kCount; ++i) runs[i * kSumThreads + thread] = sums[i];
  __syncthreads();
  if (threadIdx.y > 0) return;
  for (int run = 1; run < int(blockDim.y); ++run) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[i] += runs[i * kSumThreads + run * int(blockDim.x) + int(threadIdx.x)];
    }
  }
}

}  // namespace weft::kernels::cuda
