// THE STEP: one training step of one rank.
#pragma once

#include "weft/train/engine.h"

namespace weft::train {

// Runs the training graph on a batch: forward, backward, reductions, clipping, optimizer, in the
// order the graph gives. A step in which a rank's row budget did not suffice changes nothing and
// runs again without it. Returns what all ranks know afterwards. A step whose gradient norm is not
// finite changes no weight; the caller decides what that means.
StepTotals train_step(Engine& engine, const StepInput& input, exec::Tracing tracing);

// Runs a graph of the engine's lanes once, whatever comes of its row budget: `overflowed` of the
// totals says whether it sufficed.
StepTotals run_once(Engine& engine,
                    exec::Executor& executor,
                    const StepInput& input,
                    exec::Tracing tracing);

// The mean loss of a batch, without gradients, and no more: what was computed on the way goes as
// soon as it can, so that any number of micro-batches needs little more memory than one. All ranks
// learn whether one was told to stop.
StepTotals evaluate_step(Engine& engine, StepInput input);

// The same, and the program keeps what it computed until the next step (Program::state).
StepTotals forward_step(Engine& engine, const Batch& batch);

}  // namespace weft::train
