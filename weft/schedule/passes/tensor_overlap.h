// Places in the order where tensor-parallel ranks exchange tokens in steps
// (comm_overlap.tp_comm_overlap), each under the product beside it. The rest goes beside products
// that have nothing to do with it:
//
// - What a weight gradient reads is gathered again in front of its input gradient, which keeps the
//   tp lane busy with what it sends; behind that, the weight gradient would wait.
// - What an input gradient sends at once goes in front of the weight gradient that runs meanwhile.
// - The weight gradient of a feed-forward's second product goes behind the gradients (at once, or
//   the first of them) for attention's projection, and that of the projection behind the first for
//   the feed-forward before it: those products are small, and what comes needs more cover. Where
//   weight gradients wait, the feed-forward's first takes the place of its second.
// - The embedding, which has no products: where a forward follows a backward, its tokens come
//   beside the end of that backward, and the gradients of that backward go beside the beginning of
//   the forward.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Over any training order with recomputation.
Graph overlap_tensor_exchange(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
