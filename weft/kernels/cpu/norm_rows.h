// What the norms share: a group's reciprocal, and how the sums of their weight gradients are cut.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

template <typename T>
float reciprocal_rms(const T* x, std::int64_t n, float epsilon) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += load(x[i]) * load(x[i]);
  return 1.0f / std::sqrt(sum / static_cast<float>(n) + epsilon);
}

// Parts of the rows whose weight gradients are summed on their own.
inline Cut partial_sums(std::int64_t rows) {
  constexpr std::int64_t kRowsPerPart = 64;  // at least
  constexpr std::int64_t kParts = 16;        // at most
  return {rows, std::max(kRowsPerPart, (rows + kParts - 1) / kParts)};
}

}  // namespace weft::kernels::cpu
