// The state is copied for a checkpoint while the next step computes (checkpoint.async_save).
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The anatomy with `snapshot` at the start of a step, on the copy lane: behind the gathers that
// bring weights, and before every `optimizer`, which changes weights, moments and biases. After
// with_gathers_ahead.
Anatomy with_snapshot(Anatomy anatomy);

// The order of such an anatomy, from one without: as early as it may. After all other passes.
Graph place_snapshot(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
