// Which memory a config asks to save, in the words of the schedule: what is split and made again.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// `detail` with what model.recompute_granularity, recompute_modules, recompute_method and
// recompute_num_layers ask for.
Detail with_savings(Detail detail, const config::ModelConfig& model);

}  // namespace weft::schedule
