// A run of layers like one of a model's, without anything else of it: what small runs are made of
// that say what one more layer takes.
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/plan/layer_time.h"

namespace weft::plan {

// Every layer is as `layer` is, and runs again as a whole or not. No pipeline, nothing to exchange
// between data-parallel ranks, nothing offloaded (offloaded_layers.h does that); its parts are
// those that a schedule has.
config::Config layers_alone(const config::Config& config, std::int64_t layer, Recomputed whole);

}  // namespace weft::plan
