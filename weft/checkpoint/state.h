// WHAT IS KEPT? All state a resumed run needs, as one list.
#pragma once

#include <string>

#include "weft/tensor/slice.h"

namespace weft::checkpoint {

// One tensor of the run's state: this rank's part of a global tensor, or a range of that part.
// Ranks that hold the same (replicas) list it alike.
struct StateEntry {
  std::string name;       // "optimizer.moment1/layers.3.experts.fc1.weight"
  tensor::Tensor tensor;  // the elements of the slice, in its order
  tensor::Slice slice;    // which elements of the global tensor they are
};

}  // namespace weft::checkpoint
