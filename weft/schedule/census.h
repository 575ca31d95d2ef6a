// Nodes of a step.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// All nodes of a training step, or of a forward-only step (which ends with `totals`), in no
// particular order.
std::vector<Node> all_nodes(const Anatomy& anatomy, int micro_batches, StepKind kind);

}  // namespace weft::schedule
