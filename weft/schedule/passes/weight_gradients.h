// Splits weight gradients from the backward: nodes that waited for D and W wait for the D alone,
// and the W runs during a transfer.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/passes/interleave.h"

namespace weft::schedule {

// comm_overlap.delay_wgrad_compute, for the interleaved order. Delayed: experts, shared experts,
// attention and feed-forward; router and norms stay. Attention and shared experts run during the
// previous layer's combine, or the send, that attention's D starts; a slice's W runs after the last
// slice's D. If dispatches travel beside attention, the other micro-batch's combine follows on the
// wire. The nodes that it waits for go first. The head's W then runs during the first combine, the
// embedding's during the forward's last one; otherwise both stay.
Graph delay_weight_gradients(const Graph& graph,
                             const Anatomy& anatomy,
                             int micro_batches,
                             DispatchBeside beside);

// model.overlap_dispatch_backward_with_experts_wgrad, for the plain order: the experts' weight
// gradients run during their dispatch's gradient.
Graph delay_expert_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches);

// comm_overlap.defer_embedding_wgrad_compute, for any order: the head's weight gradients of the
// last `limit` micro-batches (0: all) run after the last backward, while earlier stages drain.
// Their logits' gradients are kept until then.
Graph defer_head_gradients(const Graph& graph,
                           const Anatomy& anatomy,
                           int micro_batches,
                           int limit);

}  // namespace weft::schedule
