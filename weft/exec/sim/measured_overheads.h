// Gaps between the nodes of a traced step.
#pragma once

#include <span>

#include "weft/exec/sim/step.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// Means over all traced steps, over nodes with operations:
//   wake: gap from the end of the last awaited node of another lane to the first operation, over
//   nodes whose awaited node ended after the previous node on their lane;
//   next: gap from the end of the previous node to the first operation, over all other compute
//   nodes, plus the gaps between the operations of a compute node.
// 0: no such node. Recording a trace takes time too: the ratio of the two is more reliable than
// their lengths.
Overheads measure_overheads(std::span<const trace::Timeline> timelines);

}  // namespace weft::exec::sim
