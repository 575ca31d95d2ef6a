// Row counts per expert, and the bias update that follows from them.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

// One task: tens of thousands of slots take well under a millisecond.
void count_experts(Stream& stream, Tensor counts, Tensor experts, const TokenRuns& runs) {
  const Matrix<std::int64_t> sums = matrix<std::int64_t>(stream, counts);
  const Matrix<std::int32_t> chosen = matrix<std::int32_t>(stream, experts);
  const Faults faults(stream);
  enqueue(stream, "count_experts", WorkClass::Memory, [=](Workers&) {
    for (std::int64_t t = 0; t < chosen.rows; ++t) {
      for (std::int64_t j = 0; j < chosen.columns; ++j) {
        const std::int32_t e = chosen.row(t)[j];
        if (e < 0 || e >= sums.columns) {
          return faults.raise(FaultCode::ExpertOutOfRange, {e, sums.columns});
        }
        ++sums.row((runs.first + t) / runs.length)[e];
      }
    }
  });
}

void move_bias(Stream& stream, Tensor bias, Tensor counts, float rate) {
  const std::int64_t all = bias.dim(0);
  float* biases = data<float>(stream, bias);
  const std::int64_t* rows_of = data<std::int64_t>(stream, counts);
  enqueue(stream, "move_bias", WorkClass::Memory, [=](Workers&) {
    std::int64_t sum = 0;
    for (std::int64_t e = 0; e < all; ++e) sum += rows_of[e];
    for (std::int64_t e = 0; e < all; ++e) {
      const std::int64_t rows = rows_of[e] * all;  // compared with the sum, without rounding
      biases[e] += rows < sum ? rate : rows > sum ? -rate : 0.0f;
    }
  });
}

}  // namespace weft::kernels::cpu
