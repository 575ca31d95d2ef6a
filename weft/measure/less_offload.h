// What makes a run fit whose optimizer keeps more in host memory than there is room for.
#pragma once

#include "weft/measure/memory_fit.h"

namespace weft::measure {

// The name of this saving of host memory.
inline constexpr const char* kLessOffload = "less optimizer offload";

// The largest optimizer.optimizer_offload_fraction, in hundredths, with which the run has room in
// host memory; 0: none of the state. Nothing where it offloads no state, or lacks no host memory.
std::optional<double> fraction_with_room(const TooLarge& run);

// That fraction alone, where the device then has room too.
std::optional<Fit> fit_by_less_offload(const TooLarge& run,
                                       const Tell& tell,
                                       const Forecaster& forecast = forecast_memory);
// That fraction together with savings of the device's memory.
std::optional<Fit> fit_beside_less_offload(const TooLarge& run,
                                           const Tell& tell,
                                           const Forecaster& forecast = forecast_memory);

}  // namespace weft::measure
