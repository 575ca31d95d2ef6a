// The memory of a run and its step by the planner's price: some milliseconds where a dry step of
// many layers takes seconds, and near what that counts (docs/plan.md says how near).
#pragma once

#include "weft/measure/memory_forecast.h"
#include "weft/plan/hardware.h"

namespace weft::measure {

// As forecast_memory, which leaves out the same parts; of host memory, without copies to save.
MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced);

// Estimates of other runs than the one that was forecast, each moved by what the estimate of that
// one lacks.
Forecaster estimates_beside(const config::Config& asked,
                            const MemoryForecast& now,
                            const plan::Hardware& hardware);

}  // namespace weft::measure
