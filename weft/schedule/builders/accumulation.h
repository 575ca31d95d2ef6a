// The plain order of one pipeline stage: for each micro-batch its forward, then its backward;
// gradients accumulate; then reductions, norm and optimizer. A D and its W are one unit: whatever
// waits for the D waits for the W too.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

Graph build_accumulation(const Anatomy& anatomy, int micro_batches);

// Evaluation: forwards only.
Graph build_forward(const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
