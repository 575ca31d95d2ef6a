// Memory savings of a config in terms of the schedule: split, recomputed and offloaded pieces.
#pragma once

#include "weft/config/config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Adds to `detail` the effect of model.recompute_granularity, recompute_modules, recompute_method
// and recompute_num_layers.
Detail with_recomputed(Detail detail, const config::Config& config);

// with_recomputed, and the effect of model.offload_modules.
Detail with_savings(Detail detail, const config::Config& config);

}  // namespace weft::schedule
