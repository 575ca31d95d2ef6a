// WHAT IS KEPT? All state a resumed run needs, as one list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::checkpoint {

// One tensor of the run's state: this rank's part of a global tensor. Ranks that hold the same part
// (replicas) list it alike.
struct StateEntry {
  std::string name;       // "optimizer.moment1/layers.3.experts.fc1.weight"
  tensor::Tensor tensor;  // this rank's part
  std::vector<std::int64_t> global_shape;
  std::vector<std::int64_t> offset;  // of the part in the global tensor, one number a dim
};

}  // namespace weft::checkpoint
