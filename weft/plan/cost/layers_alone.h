// Run of identical layers without the rest of a model, for small runs that measure the cost of one
// more layer.
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/plan/cost/layer_time.h"

namespace weft::plan {

// Config with layers like `layer`, recomputed as a whole or not. No pipeline, no data-parallel
// exchange, no offload (plan/memory/offloaded_layers.h handles that). It has only parts that a
// schedule supports.
config::Config layers_alone(const config::Config& config, std::int64_t layer, Recomputed whole);

}  // namespace weft::plan
