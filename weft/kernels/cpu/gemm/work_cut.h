// Cuts of work into tasks. A cut is a function of the shapes alone, so that results do not depend
// on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/tensor/cpu/workers.h"

namespace weft::kernels::cpu {

using tensor::cpu::Workers;

// Small enough to spread over threads, large enough to pay for the handover to a thread (about 10
// us).
inline constexpr std::int64_t kElementsPerTask = 32 * 1024;

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Splits `total` into ranges of `size`, the last one shorter.
struct Cut {
  std::int64_t total = 0, size = 1;

  std::int64_t count() const { return (total + size - 1) / size; }
  Range operator[](std::int64_t i) const { return {i * size, std::min(total, (i + 1) * size)}; }
};

inline Cut cut_elements(std::int64_t elements) { return {elements, kElementsPerTask}; }

inline Cut cut_rows(std::int64_t rows, std::int64_t columns) {
  return {rows, std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, columns))};
}

// Calls body(range) for every range of the cut, on all threads.
template <typename Body>
void parallel(Workers& workers, const Cut& cut, const Body& body) {
  workers.parallel(cut.count(), [&](std::int64_t i) { body(cut[i]); });
}

// Sum of body(range) over the ranges of the cut, added in order.
template <typename Body>
double parallel_sum(Workers& workers, const Cut& cut, const Body& body) {
  std::vector<double> parts(static_cast<std::size_t>(cut.count()));
  workers.parallel(cut.count(),
                   [&](std::int64_t i) { parts[static_cast<std::size_t>(i)] = body(cut[i]); });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

}  // namespace weft::kernels::cpu
