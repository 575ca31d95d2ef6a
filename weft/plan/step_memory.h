// How much memory a step needs beside weights, gradients and optimizer state.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// The most bytes of activations that a rank keeps for the backward at any time of a training step,
// by pipeline rank, with rows routed evenly. Buffers on the wire and inside a node come on top. For
// a legal config; empty where no schedule of it can be planned.
std::vector<std::int64_t> activation_bytes(const config::Config& config);

}  // namespace weft::plan
