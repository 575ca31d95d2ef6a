// Splits of a weight along the axes of a grid, as data from which every rank's part follows.
//
// Tensor parallelism splits dense weights, expert parallelism the experts, expert tensor
// parallelism each expert. Pipeline stages split no weight: the stages of its layer hold it whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weft::block {

enum class Axis { Tp, Ep, Etp };

// Run of a dim that an axis divides separately: gate and up; queries, keys and values.
struct SplitBlock {
  std::int64_t count = 0;
  // Maximum number of parts, for key and value heads that may be fewer than ranks; further ranks
  // hold copies. 1: all ranks hold the whole run. 0: one part per rank.
  std::int64_t most_parts = 0;
  // Padded count that is divided equally; the last part is then smaller. 0: no padding.
  std::int64_t padded = 0;
};

struct AxisSplit {
  Axis axis = Axis::Tp;
  int dim = 0;
  std::vector<SplitBlock> blocks;  // cover the whole dim
};

// Rows (outputs) or columns (inputs) of a matrix, divided among the ranks of an axis.
inline AxisSplit rows(std::vector<SplitBlock> blocks, Axis axis = Axis::Tp) {
  return {.axis = axis, .dim = 0, .blocks = std::move(blocks)};
}
inline AxisSplit columns(std::int64_t count, Axis axis = Axis::Tp) {
  return {.axis = axis, .dim = 1, .blocks = {{.count = count}}};
}

}  // namespace weft::block
