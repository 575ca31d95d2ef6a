// Slow, obvious simulation: checks everything at every nanosecond.
#pragma once

#include "weft/exec/sim/simulate.h"

namespace weft::exec::sim {

// By rank and entry, as Result::entries. Costs and overheads must be whole nanoseconds.
std::vector<std::vector<Interval>> simulate_slowly(const SimulatedStep& step);

}  // namespace weft::exec::sim
