// Whether the ranks of this process fit the machine. The rules know no machine; commands that run
// do.
#pragma once

#include <optional>

#include "weft/rules/missing.h"

namespace weft::cli {

// What is wrong where weights, gradients, optimizer state and kept activations of the ranks that
// this process holds are larger than the machine's memory; or of ranks with GPUs, what they offload
// is larger than what is free of it. Buffers on the wire and inside a node come on top and are not
// counted.
std::optional<rules::Missing> machine_limit(const config::Config& config);

}  // namespace weft::cli
