// Shared experts while rows travel (model.moe_shared_expert_overlap): their first half runs under
// dispatch and their second under combine, inside one micro-batch. Backward, the second half's
// gradients run under combine's gradient and the first half's under dispatch's.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Over the plain order, with slices staggered or not.
Graph overlap_shared_experts(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
