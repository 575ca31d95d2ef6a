// Token slices (comm_overlap.moe_token_slices): neighbouring slices are staggered, so that one
// travels while another is with its experts. Needs no second micro-batch.
//
//   ep       d0 | d1 | c0  d2   | c1  d3   | c2 ...        d dispatch, e experts, c combine
//   compute     | e0 | e1       | e2       | ...
//
// The backward swaps the roles: combine's gradient takes the place of dispatch, dispatch's gradient
// that of combine.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Applied to the plain order. The interleaved order needs no such pass: it groups a layer's
// dispatches, experts and combines, and lanes stagger them.
Graph stagger_slices(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
