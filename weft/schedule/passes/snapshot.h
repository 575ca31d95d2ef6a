// Copies the state for a checkpoint while the next step computes (checkpoint.async_save).
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Adds `snapshot` at the start of a step, on the copy lane: after the gathers that bring weights,
// and before every `optimizer`, which changes weights, moments and biases. Applied after
// with_gathers_ahead.
Anatomy with_snapshot(Anatomy anatomy);

// Adds the node to an order without it, as early as possible. Applied after all other passes.
Graph place_snapshot(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
