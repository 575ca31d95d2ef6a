// Splits of a parameter along the axes of a grid, as data from which every rank's part follows.
//
// Tensor parallelism splits dense weights, expert parallelism the experts, expert tensor
// parallelism each expert. Pipeline stages split no parameter: the stages of its layer hold it
// (derive/memory/holding.h).
#pragma once

#include <span>
#include <vector>

#include "weft/base/slice.h"
#include "weft/config/model_config.h"

namespace weft::derive {

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

// Split of the rows of a token table.
AxisSplit vocabulary_split(const config::ModelConfig& config);

// Position of a rank on the axes that split parameters.
struct AxisRanks {
  int tp = 0, ep = 0, etp = 0;
};

std::int64_t ranks_of(const config::ModelConfig& config, Axis axis);

// Part of a parameter that these axes split, each along another dim. The config is valid: all
// divisions are exact.
base::Slice part_of(const config::ModelConfig& config,
                    const base::Shape& global,
                    std::span<const AxisSplit> splits,
                    const AxisRanks& ranks);

}  // namespace weft::derive
