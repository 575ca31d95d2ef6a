// How many rows each expert has, and what follows for its bias.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

// One task: even tens of thousands of slots take well under a millisecond.
void count_experts(Stream& stream, Tensor counts, Tensor experts) {
  const auto [runs, all] = matrix_shape("counts", counts);
  const auto [tokens, k] = matrix_shape("experts", experts);
  check_dtype("counts", counts, DType::I64);
  check_dtype("experts", experts, DType::I32);
  CHECK(runs >= 1 && tokens % runs == 0, "{} tokens in {} equal runs", tokens, runs);
  const Matrix<std::int64_t> sums = matrix<std::int64_t>(stream, counts);
  const Matrix<std::int32_t> chosen = matrix<std::int32_t>(stream, experts);
  stream.enqueue("count_experts", WorkClass::Memory, [=](Workers&) {
    const std::int64_t run = chosen.rows / sums.rows;
    for (std::int64_t t = 0; t < chosen.rows; ++t) {
      for (std::int64_t j = 0; j < chosen.columns; ++j) {
        const std::int32_t e = chosen.row(t)[j];
        CHECK(e >= 0 && e < sums.columns, "expert {} of {}", e, sums.columns);
        ++sums.row(t / run)[e];
      }
    }
  });
}

void move_bias(Stream& stream, Tensor bias, Tensor counts, float rate) {
  const std::int64_t all = vector_length("bias", bias);
  check_vector("counts", counts, all);
  float* biases = bias.data<float>(stream);
  const std::int64_t* rows_of = counts.data<std::int64_t>(stream);
  stream.enqueue("move_bias", WorkClass::Memory, [=](Workers&) {
    std::int64_t sum = 0;
    for (std::int64_t e = 0; e < all; ++e) sum += rows_of[e];
    for (std::int64_t e = 0; e < all; ++e) {
      const std::int64_t rows = rows_of[e] * all;  // against the sum, so that nothing is rounded
      biases[e] += rows < sum ? rate : rows > sum ? -rate : 0.0f;
    }
  });
}

}  // namespace weft::kernels
