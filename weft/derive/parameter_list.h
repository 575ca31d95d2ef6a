// Which parameters a rank holds, and which part of each.
#pragma once

#include <string>
#include <vector>

#include "weft/base/slice.h"
#include "weft/config/model_config.h"
#include "weft/derive/axis_split.h"
#include "weft/derive/holding.h"

namespace weft::derive {

// Dense parameters are the same on every data-parallel rank; expert parameters belong to the ranks
// that own the expert. Untrained ones have no gradient and no optimizer: the routers' biases, which
// balance moves; fp32 whatever the weights are, the same on every data-parallel rank.
enum class Home { Dense, Expert, Untrained };

struct ParameterSpec {
  std::string name;               // "layers.3.experts.fc1.weight"
  base::Shape global_shape;       // of the whole model
  std::vector<AxisSplit> splits;  // by which axes, along which dims
  base::Slice slice;              // this rank's part
  base::Shape shape;              // of that
  std::int64_t room = 0;          // elements in a buffer: those of the largest part of any rank
  Home home = Home::Dense;
  int layer = -1;             // -1: embedding or head
  double init_deviation = 0;  // 0: starts as ones (a norm), or as zeros where it is not trained
  bool is_matrix() const { return init_deviation > 0; }
  bool is_trained() const { return home != Home::Untrained; }
};

// Those of a holding, in order of use. Where the head has its own copy of a tied table,
// "embedding.weight" comes last.
std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config,
                                           const Holding& holding,
                                           const AxisRanks& ranks);

}  // namespace weft::derive
