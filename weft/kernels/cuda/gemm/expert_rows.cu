#include "weft/kernels/cuda/device/block_scan.h"
#include "weft/kernels/cuda/gemm/expert_rows.h"

namespace weft::kernels::cuda {
namespace expert_rows_kernels {
namespace {

constexpr int kThreads = 256;

// Unsigned: sums behind a damaged count mean nothing, and may wrap around.
using Count = unsigned long long;

__device__ Count tiles_of(Count rows, const RowCut& cut) {
  const Count cuts = (rows + Count(cut.rows) - 1) / Count(cut.rows);
  return cuts / 2 * Count(cut.of_two) + cuts % 2 * Count(cut.of_one);
}

// Place of each expert: the number of experts with more rows, or with equal rows and a smaller
// number.
__device__ void order_by_count(const ExpertRows& rows, const std::int64_t* counts) {
  __shared__ std::int64_t others[kThreads];
  for (std::int64_t chunk = 0; chunk < rows.experts; chunk += kThreads) {
    const std::int64_t e = chunk + threadIdx.x;
    const std::int64_t own = e < rows.experts ? counts[e] : 0;
    std::int64_t place = 0;
    for (std::int64_t first = 0; first < rows.experts; first += kThreads) {
      __syncthreads();
      if (first + threadIdx.x < rows.experts) others[threadIdx.x] = counts[first + threadIdx.x];
      __syncthreads();
      for (int i = 0; i < kThreads && first + i < rows.experts; ++i) {
        place += others[i] > own || (others[i] == own && first + i < e);
      }
    }
    if (e < rows.experts) rows.by_count[place] = e;
  }
}

// Runs in one block, kThreads experts at a time, one per thread. Sums up to the first count that
// does not fit are right, so that no earlier count seems not to fit.
__global__ void __launch_bounds__(kThreads)
    find_rows(ExpertRows rows, const std::int64_t* counts, Faults faults) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");  // a product that waits for these rows itself
#endif
  __shared__ Count first_bad;
  const Count experts = Count(rows.experts);
  if (threadIdx.x == 0) first_bad = experts;
  Count rows_before = 0, tiles_before = 0;
  for (std::int64_t chunk = 0; chunk < rows.experts; chunk += kThreads) {
    const std::int64_t e = chunk + threadIdx.x;
    const std::int64_t count = e < rows.experts ? counts[e] : 0;
    const Scanned<Count> at_row = block_scan(Count(count));
    const Scanned<Count> at_tile = block_scan(tiles_of(Count(count), rows.cut));
    const std::int64_t row = std::int64_t(rows_before + at_row.before);
    const std::int64_t rest = std::int64_t(Count(rows.room) - Count(row));
    if (e < rows.experts && (count < 0 || count > rest)) atomicMin(&first_bad, Count(e));
    __syncthreads();
    if (first_bad < experts) {
      if (first_bad == Count(e)) faults.raise(FaultCode::RowsOfExpertBeyondRest, count, e, rest);
      break;
    }
    if (e < rows.experts) {
      rows.first_row[e] = row;
      rows.first_tile[e] = std::int64_t(tiles_before + at_tile.before);
    }
    rows_before += at_row.total;
    tiles_before += at_tile.total;
  }
  if (first_bad < experts) {
    for (std::int64_t e = threadIdx.x; e <= rows.experts; e += kThreads) {
      rows.first_row[e] = 0;
      rows.first_tile[e] = 0;
    }
  } else if (threadIdx.x == 0) {
    rows.first_row[rows.experts] = std::int64_t(rows_before);
    rows.first_tile[rows.experts] = std::int64_t(tiles_before);
  }
  if (rows.cut.order == ExpertOrder::ByCount) order_by_count(rows, counts);
}

}  // namespace
}  // namespace expert_rows_kernels

ExpertRows expert_rows(Stream& stream, std::int64_t experts, std::int64_t room, const RowCut& cut) {
  std::int64_t* memory = scratch<std::int64_t>(stream, 3 * (experts + 1));
  return {.experts = experts,
          .room = room,
          .cut = cut,
          .first_row = memory,
          .first_tile = memory + (experts + 1),
          .by_count = memory + 2 * (experts + 1)};
}

void launch_find_rows(cudaStream_t stream,
                      const ExpertRows& rows,
                      const std::int64_t* counts,
                      const Faults& faults) {
  if (rows.experts == 0) return;
  expert_rows_kernels::find_rows<<<1, expert_rows_kernels::kThreads, 0, stream>>>(rows,
                                                                                  counts,
                                                                                  faults);
}

}  // namespace weft::kernels::cuda
