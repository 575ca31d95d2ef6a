// What a bench may time as one step.
#pragma once

#include "weft/train/engine.h"

namespace weft::measure {

// A training step by another graph of the engine's lanes: orders of one layout give the same bits.
// ConfigError as below.
train::StepTotals step_in_order(train::Engine& engine,
                                exec::Executor& order,
                                const train::StepInput& input,
                                exec::Tracing tracing);

// ConfigError where a row budget did not suffice: such a step runs twice, and that is no step.
void refuse_repeated(const train::StepTotals& totals, const config::Config& config);

}  // namespace weft::measure
