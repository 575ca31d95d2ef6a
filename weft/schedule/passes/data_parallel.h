// Gradients and weights travel between data-parallel ranks while others are computed.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Which weights are gathered in the step that changed them: none, or those of the first chunk while
// the optimizer is at the others (optimizer.overlap_param_gather_with_optimizer_step).
enum class FirstGather { NextStep, UnderOptimizer };

// ddp.overlap_param_gather: the anatomy whose weights are gathered at the start of a step.
Anatomy with_gathers_ahead(Anatomy anatomy, FirstGather first);

// When a bucket is summed: with all others at the end of a step, or as soon as its last gradient is
// there (ddp.overlap_grad_reduce).
enum class ReduceStart { AtEnd, Early };

// When gathers ahead set out: each when the one before it is read, or by chunks, on all stages of a
// pipeline at once (ddp.align_param_gather).
enum class GatherStart { OneAhead, Aligned };

// The order of an anatomy, whether with gathers ahead or without, from one without. After all other
// passes.
Graph place_exchanges(const Graph& graph,
                      const Anatomy& anatomy,
                      const PipelineShape& shape,
                      ReduceStart reduce,
                      GatherStart gather);

}  // namespace weft::schedule
