// What a bench may time as one step.
#pragma once

#include "weft/config/config.h"
#include "weft/train/totals.h"

namespace weft::measure {

// ConfigError where the step ran twice, the second time without its row budget: what was timed is
// then no step.
void refuse_repeated(const train::StepTotals& totals, const config::Config& config);

}  // namespace weft::measure
