// Simulated step in letters, ranks by time, for terminals.
//
//   rank 0  compute  |FFFFFFFFBBWWBBWW..oo|
//           ep       |..f.f...b.b.........|
//
// A letter shows the activity with the most time in its slice. Compute: F forward, R recomputation,
// B input gradient, W weight gradient, o the rest of a step. Communication: f and b by direction, s
// sums over ranks, O and I copies to the host and back; '.' idle. Communication is shown while on
// the wire, not while it waits for peers.
#pragma once

#include <string>

#include "weft/exec/sim/simulate.h"

namespace weft::cli {

// For a step without emulated links, in which an operation lasts for its cost. One line per rank of
// the step; `columns` slices of time.
std::string timeline_grid(const exec::sim::SimulatedStep& step,
                          const exec::sim::Result& result,
                          int columns);

}  // namespace weft::cli
