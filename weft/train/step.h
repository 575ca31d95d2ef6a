// The step: one training step of one rank.
#pragma once

#include "weft/train/engine.h"

namespace weft::train {

// Runs the training graph on a batch, in the order of the graph: forward, backward, reductions,
// clipping, optimizer. If a rank exceeds its row budget, the step changes nothing and runs again
// without the budget. A non-finite gradient norm changes no weight; the caller decides on the
// reaction. Returns the totals known to all ranks.
StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing);

// Runs a graph once, whatever its row budget: totals.overflowed is true if the budget was exceeded.
StepTotals run_once(Engine& engine,
                    exec::Executor& executor,
                    const StepInput& input,
                    exec::Tracing tracing);

// Mean loss of a batch, without gradients. State is freed as early as possible: many micro-batches
// need little more memory than one. All ranks learn if any rank was told to stop.
StepTotals evaluate_step(Engine& engine, StepInput input);

// Variant that keeps the computed state until the next step (Program::state).
StepTotals forward_step(Engine& engine, const Batch& batch);

}  // namespace weft::train
