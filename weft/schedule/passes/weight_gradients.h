// Splits weight gradients from the backward: what waited for a D and its W waits for the D alone,
// and the W runs while something travels.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/passes/interleave.h"

namespace weft::schedule {

// comm_overlap.delay_wgrad_compute, over the interleaved order: experts, shared experts, attention
// and feed-forward; the router's and norms' stay. Attention's and the shared experts' run while the
// combine of the layer before travels, or the send, that attention's D sets off, those of a slice
// behind the last slice's D. Where dispatches travel beside attention, the other micro-batch's
// combine follows that one on the wire: what it waits for goes first. And there the head's runs
// while the first combine travels, the embedding's while the forward's last one does; else these
// stay too.
Graph delay_weight_gradients(const Graph& graph,
                             const Anatomy& anatomy,
                             int micro_batches,
                             DispatchBeside beside);

// model.overlap_dispatch_backward_with_experts_wgrad, over the plain order: the experts' weight
// gradients run while their dispatch travels back.
Graph delay_expert_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches);

// comm_overlap.defer_embedding_wgrad_compute, over any order: the head's weight gradients of the
// last `limit` micro-batches (0: of all) run behind the last backward, while stages before the last
// one drain. Their logits' gradients are kept as long.
Graph defer_head_gradients(const Graph& graph,
                           const Anatomy& anatomy,
                           int micro_batches,
                           int limit);

}  // namespace weft::schedule
