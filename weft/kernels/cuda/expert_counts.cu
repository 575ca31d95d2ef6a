// How many rows each expert has, and what follows for its bias.
#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/operations.h"
#include "weft/kernels/cuda/warps.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Lanes whose slots fall on the same count add to it together. Whole numbers: their sums do not
// depend on the order.
__global__ void count(Matrix<std::int64_t> sums, Matrix<std::int32_t> experts, Faults faults) {
  const std::int64_t run = experts.rows / sums.rows, slots = experts.rows * experts.columns;
  for (std::int64_t begin = first_warp() * kWarp; begin < slots; begin += warp_step() * kWarp) {
    const std::int64_t slot = begin + lane(), t = slot / experts.columns;
    unsigned long long* place = nullptr;
    if (slot < slots) {
      const std::int32_t e = experts.row(t)[slot % experts.columns];
      if (e < 0 || e >= sums.columns) {
        faults.raise(FaultCode::ExpertOutOfRange, e, sums.columns);
      } else {
        place = reinterpret_cast<unsigned long long*>(sums.row(t / run) + e);
      }
    }
    __syncwarp();
    const unsigned same = __match_any_sync(kAllLanes, reinterpret_cast<unsigned long long>(place));
    const bool first = (same & lanes_below()) == 0;
    if (place != nullptr && first) atomicAdd(place, static_cast<unsigned long long>(__popc(same)));
  }
}

__global__ void move(float* bias, const std::int64_t* rows_of, std::int64_t experts, float rate) {
  std::int64_t sum = 0;
  for (std::int64_t e = threadIdx.x; e < experts; e += blockDim.x) sum += rows_of[e];
  sum = block_sum(sum);
  for (std::int64_t e = threadIdx.x; e < experts; e += blockDim.x) {
    const std::int64_t rows = rows_of[e] * experts;  // against the sum, so that nothing is rounded
    bias[e] += rows < sum ? rate : rows > sum ? -rate : 0.0f;
  }
}

}  // namespace

void count_experts(Stream& stream, Tensor counts, Tensor experts) {
  const Matrix<std::int64_t> sums = matrix<std::int64_t>(stream, counts);
  const Matrix<std::int32_t> chosen = matrix<std::int32_t>(stream, experts);
  const Faults faults(stream);
  enqueue(stream,
          "count_experts",
          WorkClass::Memory,
          {blocks_for(chosen.rows * chosen.columns, kThreads), kThreads},
          count,
          sums,
          chosen,
          faults);
}

void move_bias(Stream& stream, Tensor bias, Tensor counts, float rate) {
  const std::int64_t experts = bias.dim(0);
  enqueue(stream,
          "move_bias",
          WorkClass::Memory,
          {1, kThreads},
          move,
          data<float>(stream, bias),
          data<std::int64_t>(stream, counts),
          experts,
          rate);
}

}  // namespace weft::kernels::cuda
