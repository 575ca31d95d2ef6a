// Moves resent expert rows (passes/recompute.h) under compute of another micro-batch, if there is
// any.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Moves every recomputed dispatch, with the recomputed nodes before it, behind the first combine of
// its layer's backward. In an interleaved order, the gradients of the experts' outputs travel
// there, followed by the forward of another micro-batch; both then travel under it. In a plain
// order no node lies between, and the order stays.
Graph bring_rows_ahead(Graph graph, const Anatomy& recomputing, int micro_batches);

}  // namespace weft::schedule
