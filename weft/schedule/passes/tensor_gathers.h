// Where tensor-parallel ranks exchange tokens in steps (comm_overlap.tp_comm_overlap), the tp lane
// is busy with what an input gradient sends while it runs. What the weight gradient behind it reads
// is gathered again before that, beside what runs before the input gradient, and not behind it,
// where the weight gradient would wait for it.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Of a training order with recomputation.
Graph gather_before_products(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
