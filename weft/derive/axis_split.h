// Splits of a parameter along the axes of a grid, as data from which every rank's part follows.
//
// Tensor parallelism splits dense weights, expert parallelism the experts, expert tensor
// parallelism each expert. Pipeline stages split no parameter: the stages of its layer hold it
// (derive/memory/holding.h).
#pragma once

#include <span>
#include <vector>

#include "weft/base/slice.h"
#include "weft/block/split.h"
#include "weft/config/model_config.h"

namespace weft::derive {

using block::Axis;
using block::AxisSplit;
using block::SplitBlock;

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
