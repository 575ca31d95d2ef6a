// Memory inside the nodes of a layer, counted in a short pipeline of such layers: gradients in
// transit, rows in transit, kernel workspaces, logits. Memory kept between nodes is declared
// (memory_book.h); this is added once.
#pragma once

#include <optional>

#include "weft/config/config.h"
#include "weft/plan/memory/memory_book.h"

namespace weft::plan {

// Small run: two ranks with layers like this one if the run has a pipeline, otherwise one. Its
// micro-batches suffice to show the order. Tokens, ranks per layer, passes and vocabulary are the
// run's. Each rank has two chunks if the run has several and the stage sends, because alternating
// chunks receive early.
config::Config small_pipeline(const config::Config& config, const LayerAsked& asked, StageEnd end);

// Peak of the rank with that end, minus the bytes its layers keep for micro-batches in flight
// during that stage. nullopt: the small run cannot be counted.
std::optional<double> counted_extra(const config::Config& small,
                                    StageEnd end,
                                    const StepCounter& counter);

}  // namespace weft::plan
