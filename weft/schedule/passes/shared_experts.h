// Overlap of shared experts with dispatch (model.moe_shared_expert_overlap): their first half runs
// under dispatch and their second under combine, within one micro-batch. In the backward, the
// second half's gradients run under combine's gradient, the first half's under dispatch's.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Applied to the plain order, with slices staggered or not.
Graph overlap_shared_experts(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
