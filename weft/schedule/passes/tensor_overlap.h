// Placement of stepwise token exchanges between tensor-parallel ranks
// (comm_overlap.tp_comm_overlap), each under the product beside it. Further moves put transfers
// beside unrelated products:
//
// - The input of a weight gradient is gathered again before its input gradient, whose sends then
//   keep the tp lane busy; behind those sends, the weight gradient would wait.
// - An unsplit send of an input gradient goes before the weight gradient that runs meanwhile.
// - Attention's projection is small, so its incoming gradients need more cover: the weight gradient
//   of a feed-forward's second product follows the first of them (or all, if unsplit). The
//   projection's weight gradient in turn follows the first gradients of the feed-forward before it.
//   If weight gradients are delayed, the feed-forward's first product takes the place of its
//   second.
// - The embedding has no products. If a forward follows a backward, its tokens arrive beside the
//   end of that backward, and the backward's gradients leave beside the beginning of the forward.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Applied to any training order with recomputation.
Graph overlap_tensor_exchange(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
