// What the norms share: a group's reciprocal, and how the sums of their weight gradients are cut.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

// Summed in runs, so that a long row loses no more digits than a short one, however wide the
// processor's vectors are.
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

// Parts of the rows whose weight gradients are summed on their own.
inline Cut partial_sums(std::int64_t rows) {
  constexpr std::int64_t kRowsPerPart = 64;  // at least
  constexpr std::int64_t kParts = 16;        // at most
  return {rows, std::max(kRowsPerPart, (rows + kParts - 1) / kParts)};
}

}  // namespace weft::kernels::cpu
