// Rows of each expert, and the step of its bias that follows.
#include <algorithm>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace expert_counts_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kSlots = 8;  // per thread, if there are enough
// Limit from the shared memory of a block.
constexpr std::int64_t kMostExperts = 8192;

// A block counts slots of a run in its shared memory, then adds its counts to the run's. Whole
// numbers: their sums do not depend on the order.
__global__ void count(Matrix<std::int64_t> sums,
                      Matrix<std::int32_t> experts,
                      TokenRuns runs,
                      Faults faults) {
  extern __shared__ unsigned own[];
  const std::int64_t end = runs.first + experts.rows;
  for (std::int64_t g = runs.first / runs.length + blockIdx.y; g * runs.length < end;
       g += gridDim.y) {
    const std::int64_t begins = max(g * runs.length, runs.first) - runs.first;
    const std::int64_t ends = min((g + 1) * runs.length, end) - runs.first;
    const std::int64_t slots = (ends - begins) * experts.columns;
    for (std::int64_t e = threadIdx.x; e < sums.columns; e += blockDim.x) own[e] = 0;
    __syncthreads();
    for (std::int64_t slot = first_index(); slot < slots; slot += index_step()) {
      const std::int64_t t = begins + slot / experts.columns;
      const std::int32_t e = experts.row(t)[slot % experts.columns];
      if (e < 0 || e >= sums.columns) {
        faults.raise(FaultCode::ExpertOutOfRange, e, sums.columns);
      } else {
        atomicAdd(own + e, 1u);
      }
    }
    __syncthreads();
    for (std::int64_t e = threadIdx.x; e < sums.columns; e += blockDim.x) {
      if (own[e] == 0) continue;
      atomicAdd(reinterpret_cast<unsigned long long*>(sums.row(g) + e),
                static_cast<unsigned long long>(own[e]));
    }
  }
}

__global__ void move(float* bias, const std::int64_t* rows_of, std::int64_t experts, float rate) {
  std::int64_t sum = 0;
  for (std::int64_t e = threadIdx.x; e < experts; e += blockDim.x) sum += rows_of[e];
  sum = block_sum(sum);
  for (std::int64_t e = threadIdx.x; e < experts; e += blockDim.x) {
    const std::int64_t rows =
        rows_of[e] * experts;  // compared with the sum, so that nothing is rounded
    bias[e] += rows < sum ? rate : rows > sum ? -rate : 0.0f;
  }
}

}  // namespace
}  // namespace expert_counts_kernels

void count_experts(Stream& stream, Tensor counts, Tensor experts, const TokenRuns& runs) {
  const Matrix<std::int64_t> sums = matrix<std::int64_t>(stream, counts);
  const Matrix<std::int32_t> chosen = matrix<std::int32_t>(stream, experts);
  CHECK(sums.columns <= expert_counts_kernels::kMostExperts,
        "the rows of {} experts; this device has room for {}",
        sums.columns,
        expert_counts_kernels::kMostExperts);
  // A run longer than all tokens may not fit its number.
  const TokenRuns held{.first = runs.first,
                       .length = std::min(runs.length, runs.first + chosen.rows + 1)};
  const std::int64_t slots = std::min(chosen.rows, held.length) * chosen.columns;
  const dim3 blocks(
      blocks_for(slots, expert_counts_kernels::kThreads * expert_counts_kernels::kSlots),
      static_cast<unsigned>(std::min<std::int64_t>(sums.rows, 65535)));
  const Faults faults(stream);
  enqueue(stream,
          "count_experts",
          WorkClass::Memory,
          {blocks, expert_counts_kernels::kThreads, std::size_t(sums.columns) * sizeof(unsigned)},
          expert_counts_kernels::count,
          sums,
          chosen,
          held,
          faults);
}

void move_bias(Stream& stream, Tensor bias, Tensor counts, float rate) {
  const std::int64_t experts = bias.dim(0);
  enqueue(stream,
          "move_bias",
          WorkClass::Memory,
          {1, expert_counts_kernels::kThreads},
          expert_counts_kernels::move,
          data<float>(stream, bias),
          data<std::int64_t>(stream, counts),
          experts,
          rate);
}

}  // namespace weft::kernels::cuda
