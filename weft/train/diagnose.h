// Where a step stopped being finite. Runs after the step, never inside it.
#pragma once

#include <string>

#include "weft/train/engine.h"

namespace weft::train {

struct NotFinite {
  int rank = 0;      // where it is seen earliest
  std::string what;  // node or parameter, with its layer, and the step's numbers
};

// Names the first rank, node or parameter, and layer whose values are not finite. Every rank calls
// it, with the step's input and totals, and gets the same finding. Runs the step's forward again,
// looking at every node.
NotFinite find_not_finite(Engine& engine, const StepInput& step, const StepTotals& totals);

}  // namespace weft::train
