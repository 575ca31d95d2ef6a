// Smaller activations in narrow formats (fp8, fp4), which no dry step of this build counts.
#pragma once

#include "weft/config/config.h"
#include "weft/measure/memory/memory_forecast.h"

namespace weft::measure {

// Reduces the activations of a forecast from the formats of `counted`, the config of the dry step,
// to those of `asked`. It uses the planner's formula, so `weft memory` and `weft plan` agree. The
// forecast notes the reduction. `pp_ranks`: the pipeline ranks of its stages.
void take_narrow_formats(const config::Config& asked,
                         const config::Config& counted,
                         const std::vector<int>& pp_ranks,
                         MemoryForecast& forecast);

// Counted config with the formats of `asked`.
config::Config with_formats_of(const config::Config& asked, config::Config counted);

}  // namespace weft::measure
