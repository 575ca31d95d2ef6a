// Times of exchanges between context-parallel ranks.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Both passes apply to any training order, last of all passes: they also move exchanges of
// recomputations.

// Moves stepwise exchanges (`ring#i`) one step ahead of their reader. Keys of step i travel during
// attention of the previous step, and gradients return during the following step.
Graph run_ring_ahead(const Graph& graph, const Anatomy& anatomy, int micro_batches);

// Without overlap: an exchange starts when the compute before it has ended, and holds up the
// compute behind it.
Graph run_ring_in_line(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
