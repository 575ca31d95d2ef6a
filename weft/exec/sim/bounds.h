// Lower bounds on a step's time, for any order.
#pragma once

#include <algorithm>

#include "weft/exec/sim/step.h"

namespace weft::exec::sim {

struct Bounds {
  double compute_seconds = 0;        // rank with the most compute
  double communication_seconds = 0;  // busiest lane, each operation alone on the fabric

  double step_seconds() const { return std::max(compute_seconds, communication_seconds); }
  // Bound if communication slows the compute beside it by the fraction `slower`, less than 1. The
  // best order then hides all communication, and compute is slowed while communication lasts.
  double beside(double slower) const {
    const double hidden = std::min(compute_seconds, communication_seconds);
    return std::max(communication_seconds, compute_seconds + hidden * slower / (1 + slower));
  }
};

Bounds bounds_of(const SimulatedStep& step);

}  // namespace weft::exec::sim
