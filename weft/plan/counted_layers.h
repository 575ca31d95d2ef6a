// What lives inside the nodes of a layer, counted in a short pipeline of such layers: gradients on
// their way back, rows on the wire, what kernels work in, logits. What a run keeps between nodes
// is declared (memory_book.h); this comes on top of it, once.
#pragma once

#include <optional>

#include "weft/config/config.h"
#include "weft/plan/memory_book.h"

namespace weft::plan {

// Two ranks with layers like this one where the run has a pipeline, else one; as many micro-batches
// as show its order. Tokens, ranks that share a layer, passes and vocabulary are the run's. Ranks
// have two chunks where the run's have several and the stage sends: chunks in turn receive ahead.
config::Config small_pipeline(const config::Config& config, const LayerAsked& asked, StageEnd end);

// What the rank with that end has at most, less what its layers keep for the micro-batches in
// flight while it works on that stage; none where the small run cannot be counted.
std::optional<double> counted_extra(const config::Config& small,
                                    StageEnd end,
                                    const StepCounter& counter);

}  // namespace weft::plan
