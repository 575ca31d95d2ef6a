// Which memory a config asks to save, in the words of the schedule: what is split, what is made
// again and what waits in the host's memory.
#pragma once

#include "weft/config/config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// `detail` with what model.recompute_granularity, recompute_modules, recompute_method and
// recompute_num_layers ask for.
Detail with_recomputed(Detail detail, const config::Config& config);

// That, and what model.offload_modules ask for.
Detail with_savings(Detail detail, const config::Config& config);

}  // namespace weft::schedule
