// Verification of one rank's order before it runs, whatever its origin.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/fault.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Verifies one rank's graph. Waits name earlier entries. Every node of the anatomy appears exactly
// once, on its lane, and no other node does. Lanes and waits imply every required dependency.
// Faults are of graph 0.
std::vector<Fault> verify(const Graph& graph,
                          const Anatomy& anatomy,
                          int micro_batches,
                          StepKind kind);

}  // namespace weft::schedule
