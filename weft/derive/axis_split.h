// How the axes of a grid split a parameter: data, from which every rank's part follows.
//
// Tensor parallelism splits dense weights, expert parallelism the experts, expert-tensor
// parallelism each expert. Pipeline stages split no parameter: each is held by the stages of its
// layer (derive/holding.h).
#pragma once

#include <span>
#include <vector>

#include "weft/base/slice.h"
#include "weft/config/model_config.h"

namespace weft::derive {

enum class Axis { Tp, Ep, Etp };

// A run of a dim that an axis divides on its own: gate and up, queries, keys and values.
struct SplitBlock {
  std::int64_t count = 0;
  // Key and value heads are fewer than ranks may be: so many parts at most, and ranks that are more
  // hold copies. 1: all ranks have the whole run; 0: as many parts as there are ranks.
  std::int64_t most_parts = 0;
  // What the parts are equal parts of, where that is more than there is: the last is smaller.
  std::int64_t padded = 0;
};

struct AxisSplit {
  Axis axis = Axis::Tp;
  int dim = 0;
  std::vector<SplitBlock> blocks;  // together the whole dim
};

// Of the rows of a table of tokens.
AxisSplit vocabulary_split(const config::ModelConfig& config);

// Where a rank is on the axes that split parameters.
struct AxisRanks {
  int tp = 0, ep = 0, etp = 0;
};

std::int64_t ranks_of(const config::ModelConfig& config, Axis axis);

// A rank's part of a parameter that these axes split, each another dim. The config has been
// validated: what is divided can be divided.
base::Slice part_of(const config::ModelConfig& config,
                    const base::Shape& global,
                    std::span<const AxisSplit> splits,
                    const AxisRanks& ranks);

}  // namespace weft::derive
