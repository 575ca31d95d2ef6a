// Rows that travel to their experts once more (passes/recompute.h) travel under the compute of
// another micro-batch, where there is some.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// A training order in which every dispatch that runs again, with what runs again in front of it,
// stands behind the first combine of its layer's backward. In an interleaved order that is where
// the gradients of the experts' outputs travel, with the forward of another micro-batch behind
// them, and so both travel under it; in a plain order nothing stands between, and nothing moves.
Graph bring_rows_ahead(const Graph& graph, const Anatomy& recomputing, int micro_batches);

}  // namespace weft::schedule
