// State that a resumed run needs, as one list.
#pragma once

#include <string>

#include "weft/tensor/slice.h"

namespace weft::checkpoint {

// One tensor of the run's state: this rank's part of a global tensor, or a range of that part.
// Replicas have equal entries on their ranks.
struct StateEntry {
  std::string name;       // "optimizer.moment1/layers.3.experts.fc1.weight"
  tensor::Tensor tensor;  // elements of the slice, in its order
  tensor::Slice slice;    // position in the global tensor
};

}  // namespace weft::checkpoint
