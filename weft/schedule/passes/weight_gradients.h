// Splits weight gradients from the backward: what waited for a D and its W waits for the D alone,
// and the W runs while something travels.
#pragma once

#include <functional>

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Which exchange of a layer's backward has less to run beside it in the interleaved order,
// Place::Combine or Place::Dispatch: the combine has another micro-batch's attention, each of the
// two dispatches about half of what the experts compute in their three directions.
Place least_covered(const config::ModelConfig& model, int layer);

// Beside which exchange of a layer's backward the weight gradients of the layer after it run.
using BesideOf = std::function<Place(int layer)>;

// comm_overlap.delay_wgrad_compute, over the interleaved order: experts, shared experts, attention
// and feed-forward; the router's, norms', embedding's and head's stay. Attention's and the shared
// experts' run behind an exchange of the layer before, or the send, that attention's D sets off,
// those of a slice behind the last slice's D.
Graph delay_weight_gradients(const Graph& graph,
                             const Anatomy& anatomy,
                             int micro_batches,
                             const BesideOf& beside);

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
