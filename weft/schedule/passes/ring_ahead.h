// When what context-parallel ranks exchange travels.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Both over any training order, the last of the passes: they move what recomputation brings again
// too.

// Exchanges in steps (`ring#i`) one step ahead of what reads them: the keys of step i travel while
// attention is with those of the step before, and gradients go home under the step after.
Graph run_ring_ahead(const Graph& graph, const Anatomy& anatomy, int micro_batches);

// Without that: no exchange beside compute, each begins when the compute in front of it is over and
// holds up what is behind it.
Graph run_ring_in_line(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
