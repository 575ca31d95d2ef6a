// Parts shared by the norms: the reciprocal of a group, and the cut of weight-gradient sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"

namespace weft::kernels::cpu {

// 1 / RMS of n elements, summed in runs. A long row so loses no more digits than a short one,
// whatever the vector width.
template <typename T>
float reciprocal_rms(const T* x, std::int64_t n, float epsilon) {
  constexpr std::int64_t kRun = 256;
  double all = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = std::min(n, begin + kRun);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) sum += load(x[i]) * load(x[i]);
    all += sum;
  }
  return 1.0f / std::sqrt(static_cast<float>(all) / static_cast<float>(n) + epsilon);
}

// Cut of the rows; each range sums its weight gradients on its own.
inline Cut partial_sums(std::int64_t rows) {
  constexpr std::int64_t kRowsPerPart = 64;  // at least
  constexpr std::int64_t kParts = 16;        // at most
  return {rows, std::max(kRowsPerPart, (rows + kParts - 1) / kParts)};
}

}  // namespace weft::kernels::cpu
