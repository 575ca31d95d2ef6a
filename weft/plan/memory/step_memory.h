// Memory of a step besides weights, gradients and optimizer state.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// Peak bytes of activations kept for the backward in a training step, by pipeline rank, under even
// routing. Buffers in transit and inside a node come on top. For a legal config; empty: no schedule
// can be planned.
std::vector<std::int64_t> activation_bytes(const config::Config& config);

}  // namespace weft::plan
