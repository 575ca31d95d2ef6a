// Estimate of a run's memory and step time by the planner's cost model. It takes milliseconds where
// a dry step of many layers takes seconds; docs/plan.md states its accuracy.
#pragma once

#include "weft/measure/memory/memory_forecast.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::measure {

// Like forecast_memory, with the same parts left out; without the pieces of a peak. No part is left
// out for hardware with the work of Megatron Bridge (plan::ProgramWork).
MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced);

// Closer estimate: memory inside the nodes of a layer is counted in short pipelines of such layers
// (plan/memory/counted_layers.h). Number formats are those of `asked`. Not priced.
MemoryForecast estimate_closely(const config::Config& asked, const plan::Hardware& hardware);

// estimate_closely, with a dry step for each rank that may need the most memory.
MemoryForecast count_largest(const config::Config& asked, const plan::Hardware& hardware);

// Forecast of a run of many equal layers from dry steps of two models of some of these layers:
// bytes and seconds grow by the same amount for each layer. nullopt: layers or stages differ, or
// the run is not much longer than those.
std::optional<MemoryForecast> extend_layers(const config::Config& asked, Priced priced);

// Estimator for variants of a forecast run. Each estimate is corrected by the error of the estimate
// of `asked`. Variants differ only in savings; shared parts are cached.
Forecaster estimates_beside(const config::Config& asked,
                            const MemoryForecast& now,
                            const plan::Hardware& hardware);

}  // namespace weft::measure
