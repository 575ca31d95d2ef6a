// What a training step has in memory besides weights, gradients and optimizer state, counted by a
// dry step of the engine: for a plan, which counts short runs (plan/counted_layers.h).
#pragma once

#include <vector>

#include "weft/config/config.h"

namespace weft::measure {

// By pipeline rank: activations, what is on the wire and what kernels work in, at the moment at
// which they are most. None where no step of it can be counted.
std::vector<double> count_step(const config::Config& config);

}  // namespace weft::measure
