// Exchanges in steps (`ring#i`) one step ahead of what reads them: the keys of step i travel while
// attention is with those of the step before. In the plain order they set out after it.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Over any training order, the last of the passes: it moves what recomputation brings again too.
Graph run_ring_ahead(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
