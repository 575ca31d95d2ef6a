// Token slices (comm_overlap.moe_token_slices): neighbours are staggered, so that a slice travels
// while the one beside it is with its experts. Needs no second micro-batch.
//
//   ep       d0 | d1 | c0  d2   | c1  d3   | c2 ...        d dispatch, e experts, c combine
//   compute     | e0 | e1       | e2       | ...
//
// The backward is the same with combine's gradient in the place of dispatch and dispatch's in the
// place of combine.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Over the plain order. The interleaved order needs no such pass: it groups a layer's dispatches,
// experts and combines, and lanes stagger them.
Graph stagger_slices(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
