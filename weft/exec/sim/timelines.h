// A simulated step as exec/real would have traced it.
#pragma once

#include <vector>

#include "weft/exec/sim/simulate.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// By rank: a span a node, of the same names, lanes and kinds as exec/real's, and inside it one
// operation: communication, or of the kind that the node's cost gives. Times are from the start of
// the step.
std::vector<trace::Timeline> timelines_of(const Step& step, const Result& result);

}  // namespace weft::exec::sim
