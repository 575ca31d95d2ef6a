// What a run keeps less in formats of few bits (fp8, fp4), which no dry step of this build counts.
#pragma once

#include "weft/config/config.h"
#include "weft/measure/memory_forecast.h"

namespace weft::measure {

// Makes the activations of a forecast smaller by what layers keep less in the formats of `asked`
// than in those of `counted`, the run that the dry step was of: by the planner's formula, so that
// `weft memory` and `weft plan` say the same. The forecast then tells so. `pp_ranks`: of its
// stages.
void take_narrow_formats(const config::Config& asked,
                         const config::Config& counted,
                         const std::vector<int>& pp_ranks,
                         MemoryForecast& forecast);

// A run that is counted, with the formats of the one that was asked for.
config::Config with_formats_of(const config::Config& asked, config::Config counted);

}  // namespace weft::measure
