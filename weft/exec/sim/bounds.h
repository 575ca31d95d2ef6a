// What no order of a step can beat.
#pragma once

#include <algorithm>

#include "weft/exec/sim/step.h"

namespace weft::exec::sim {

struct Bounds {
  double compute_seconds = 0;        // of the rank that computes longest
  double communication_seconds = 0;  // of the busiest lane, each operation alone on the fabric

  double step_seconds() const { return std::max(compute_seconds, communication_seconds); }
};

Bounds bounds_of(const SimulatedStep& step);

}  // namespace weft::exec::sim
