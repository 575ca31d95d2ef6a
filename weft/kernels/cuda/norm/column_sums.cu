#include "weft/kernels/cuda/norm/column_sums.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace column_sums_kernels {
namespace {

// Two blocks per multiprocessor of 132: they run at once.
constexpr std::int64_t kBlocks = 264;
constexpr std::int64_t kGroupsPerRun = 4;

// Block that adds parts: columns, and runs of parts per column.
constexpr int kColumns = kWarp;
constexpr int kRuns = 16;

// Adds every kRuns-th part in order, then those runs in order.
__global__ void add_columns(float* dw,
                            const float* parts,
                            std::int64_t count,
                            std::int64_t width,
                            Write write) {
  __shared__ float runs[kRuns][kColumns];
  const std::int64_t column = std::int64_t(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < width) {
#pragma unroll 4
    for (std::int64_t i = threadIdx.y; i < count; i += kRuns) sum += parts[i * width + column];
  }
  runs[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  for (int run = 1; run < kRuns; ++run) sum += runs[run][threadIdx.x];
  dw[column] = write == Write::Assign ? sum : dw[column] + sum;
}

}  // namespace
}  // namespace column_sums_kernels

ColumnSums column_sums(const Groups& groups, std::int64_t packs) {
  ColumnSums sums;
  while (sums.across < kWarp && sums.across < packs) sums.across *= 2;
  sums.tiles = divided_up(packs, sums.across);
  const std::int64_t parts = std::max<std::int64_t>(1, column_sums_kernels::kBlocks / sums.tiles);
  sums.groups_per_part =
      std::max(column_sums_kernels::kGroupsPerRun * sums.down(), divided_up(groups.count, parts));
  sums.parts = divided_up(groups.count, sums.groups_per_part);
  return sums;
}

void add_parts(cudaStream_t handle,
               float* dw,
               const float* parts,
               std::int64_t count,
               std::int64_t width,
               Write write) {
  const auto blocks = static_cast<unsigned>(divided_up(width, column_sums_kernels::kColumns));
  column_sums_kernels::
      add_columns<<<blocks,
                    dim3(column_sums_kernels::kColumns, column_sums_kernels::kRuns),
                    0,
                    handle>>>(dw, parts, count, width, write);
}

}  // namespace weft::kernels::cuda
