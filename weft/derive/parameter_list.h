// Parameters of a rank, and its part of each.
#pragma once

#include <string>
#include <vector>

#include "weft/base/slice.h"
#include "weft/block/block.h"
#include "weft/config/model_config.h"
#include "weft/derive/axis_split.h"
#include "weft/derive/memory/holding.h"

namespace weft::derive {

using block::Home;
using block::Start;

struct ParameterSpec {
  std::string name;               // "layers.3.experts.fc1.weight"
  base::Shape global_shape;       // shape in the whole model
  std::vector<AxisSplit> splits;  // axes and dims of the splits
  base::Slice slice;              // this rank's part
  base::Shape shape;              // slice's shape
  std::int64_t room = 0;          // elements in a buffer: the size of the largest part of any rank
  Home home = Home::Dense;
  block::Piece piece = block::Piece::Embed;  // piece that reads it
  int layer = -1;                            // -1: embedding or head
  Start start = Start::Ones;
  double init_deviation = 0;  // standard deviation of a product's weight
  bool is_matrix() const { return start == Start::Product || start == Start::Residual; }
  bool is_trained() const { return home != Home::Untrained; }
};

// Parameters of a holding, in order of use. If the head has a copy of a tied table,
// "embedding.weight" comes last.
std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config,
                                           const Holding& holding,
                                           const AxisRanks& ranks);

}  // namespace weft::derive
