// Overlap of gradient reductions and weight gathers between data-parallel ranks with compute.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Weights gathered in the step that updated them. NextStep: none. UnderOptimizer: those of the
// first chunk, while the optimizer updates the others
// (optimizer.overlap_param_gather_with_optimizer_step).
enum class FirstGather { NextStep, UnderOptimizer };

// ddp.overlap_param_gather: anatomy with gathers at the start of a step.
Anatomy with_gathers_ahead(Anatomy anatomy, FirstGather first);

// Start of a bucket's reduction: at the end of the step, or after its last gradient
// (ddp.overlap_grad_reduce).
enum class ReduceStart { AtEnd, Early };

// Start of early gathers: each when the previous one is read, or by chunks, simultaneously on all
// pipeline stages (ddp.align_param_gather).
enum class GatherStart { OneAhead, Aligned };

// Moves the exchanges of an order to the places that `anatomy` asks for, with or without early
// gathers. Applied after all other passes.
Graph place_exchanges(const Graph& graph,
                      const Anatomy& anatomy,
                      const PipelineShape& shape,
                      ReduceStart reduce,
                      GatherStart gather);

}  // namespace weft::schedule
