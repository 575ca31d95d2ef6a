// What no order of a step can beat.
#pragma once

#include <algorithm>

#include "weft/exec/sim/step.h"

namespace weft::exec::sim {

struct Bounds {
  double compute_seconds = 0;        // of the rank that computes longest
  double communication_seconds = 0;  // of the busiest lane, each operation alone on the fabric

  double step_seconds() const { return std::max(compute_seconds, communication_seconds); }
  // Where compute beside communication takes so much of itself longer, and less than twice as long:
  // then hiding all of it is best, and compute is slowed down for as long as communication takes.
  double beside(double slower) const {
    const double hidden = std::min(compute_seconds, communication_seconds);
    return std::max(communication_seconds, compute_seconds + hidden * slower / (1 + slower));
  }
};

Bounds bounds_of(const SimulatedStep& step);

}  // namespace weft::exec::sim
