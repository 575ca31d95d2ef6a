// The memory of a run and its step by the planner's price: some milliseconds where a dry step of
// many layers takes seconds, and near what that counts (docs/plan.md says how near).
#pragma once

#include "weft/measure/memory_forecast.h"
#include "weft/plan/hardware.h"

namespace weft::measure {

// As forecast_memory, which leaves out the same parts; without the pieces of a peak.
MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced);

// Nearer: what lives inside the nodes of a layer is counted in short pipelines of such layers
// (plan/counted_layers.h), and formats of few bits are those of `asked`. Not priced.
MemoryForecast estimate_closely(const config::Config& asked, const plan::Hardware& hardware);

// estimate_closely with the rank that needs most counted by a dry step, and each that might.
MemoryForecast count_largest(const config::Config& asked, const plan::Hardware& hardware);

// Estimates of other runs than the one that was forecast, each moved by what the estimate of that
// one lacks. The runs differ in their savings alone: what they have in common is looked up once.
Forecaster estimates_beside(const config::Config& asked,
                            const MemoryForecast& now,
                            const plan::Hardware& hardware);

}  // namespace weft::measure
