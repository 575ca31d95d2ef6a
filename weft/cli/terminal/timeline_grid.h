// A simulated step in letters: ranks by time, for terminals.
//
//   rank 0  compute  |FFFFFFFFBBWWBBWW..oo|
//           ep       |..f.f...b.b.........|
//
// A letter is what took most of its slice of time: of compute F forward, R forward once more
// (recomputation), B input gradient, W weight gradient, o the rest of a step; of communication f
// and b by direction, s sums over ranks, O and I copies to the host and back; '.' is nothing.
// Communication is shown while it is on the wire, not while it waits for its peers.
#pragma once

#include <string>

#include "weft/exec/sim/simulate.h"

namespace weft::cli {

// Of a step without a wire, where an operation lasts as long as it costs. Ranks are those of the
// step; `columns` slices of time.
std::string timeline_grid(const exec::sim::SimulatedStep& step,
                          const exec::sim::Result& result,
                          int columns);

}  // namespace weft::cli
