// Steps that a bench may time.
#pragma once

#include "weft/train/engine.h"

namespace weft::measure {

// Runs a training step with another graph on the engine's lanes: orders of one layout are
// bit-identical. ConfigError as below.
train::StepTotals step_in_order(train::Engine& engine,
                                exec::Executor& order,
                                const train::StepInput& input,
                                exec::Tracing tracing);

// ConfigError if a row budget was exceeded: such a step runs twice and is no valid sample.
void refuse_repeated(const train::StepTotals& totals, const config::Config& config);

}  // namespace weft::measure
