// What passes between the nodes of a traced step.
#pragma once

#include <span>

#include "weft/exec/sim/step.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// Means over all traced steps, of nodes that have operations:
//   wake: from the end of the last node of another lane that a node waited for to its first
//   operation, where that was later than the end of the node before it on its lane;
//   next: of compute nodes, from the end of the node before it to its first operation, where it
//   waited for nothing else, and what lies between its own operations.
// Each is zero where there is no such node. Recording a trace takes time too: how the two compare
// is known better than how long they are.
Overheads measure_overheads(std::span<const trace::Timeline> timelines);

}  // namespace weft::exec::sim
