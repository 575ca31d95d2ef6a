// Keys of a layout, for programs and for a command line.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"

namespace weft::plan {

// {"model.tensor_model_parallel_size": 1, ...}: keys that a search sets, without those that are off
// here and in most layouts.
base::Json layout_keys(const config::Config& config);
// All of these keys as words for Megatron Bridge and Weft: "model.tensor_model_parallel_size=1".
// Keys that are off appear too, as "model.recompute_granularity=null": the recipe may have them on.
// Values with shell characters are quoted.
std::vector<std::string> layout_overrides(const config::Config& config);

}  // namespace weft::plan
