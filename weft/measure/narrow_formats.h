// What a run keeps less in formats of few bits (fp8, fp4), which no dry step of this build counts.
#pragma once

#include "weft/config/config.h"
#include "weft/measure/memory_forecast.h"

namespace weft::measure {

// Makes the activations of a forecast smaller by what layers keep less in the formats of `asked`
// than in those of `counted`, the run that the dry step was of: by the planner's formula, so that
// `weft memory` and `weft plan` say the same. The forecast then tells so.
void take_narrow_formats(const config::Config& asked,
                         const config::Config& counted,
                         MemoryForecast& forecast);

}  // namespace weft::measure
