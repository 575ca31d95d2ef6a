// Memory of a training step besides weights, gradients and optimizer state, counted by a dry step
// of the engine. The planner counts short runs with it (plan/memory/counted_layers.h).
#pragma once

#include <vector>

#include "weft/config/config.h"

namespace weft::measure {

// Peak bytes by pipeline rank: activations, communication buffers and workspaces. Empty: no step of
// it can be counted.
std::vector<double> count_step(const config::Config& config);

}  // namespace weft::measure
