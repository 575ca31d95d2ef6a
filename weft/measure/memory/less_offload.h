// Fits a run whose offloaded optimizer exceeds host memory.
#pragma once

#include "weft/measure/memory/memory_fit.h"

namespace weft::measure {

// Name of this saving of host memory.
inline constexpr const char* kLessOffload = "less optimizer offload";

// Largest optimizer.optimizer_offload_fraction, in hundredths, that fits into host memory; 0: no
// state. nullopt: the run offloads no state, or host memory suffices.
std::optional<double> fraction_with_room(const TooLarge& run);

// Fit with this fraction alone, if the device has room then.
std::optional<Fit> fit_by_less_offload(const TooLarge& run,
                                       const Tell& tell,
                                       const Forecaster& forecast = forecast_memory);
// Fit with this fraction and savings of device memory.
std::optional<Fit> fit_beside_less_offload(const TooLarge& run,
                                           const Tell& tell,
                                           const Forecaster& forecast = forecast_memory);

}  // namespace weft::measure
