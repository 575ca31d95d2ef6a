// Search for the first non-finite value of a step. Runs after the step, never inside it.
#pragma once

#include <string>

#include "weft/train/engine.h"

namespace weft::train {

struct NotFinite {
  int rank = 0;      // rank with the earliest one
  std::string what;  // node or parameter with its layer, and the totals of the step
};

// Names the first rank, node or parameter, and layer with a non-finite value. Every rank calls it,
// with the step's input and totals, and gets the same finding. Runs the forward again and inspects
// every node.
NotFinite find_not_finite(Engine& engine, const StepInput& step, const StepTotals& totals);

}  // namespace weft::train
