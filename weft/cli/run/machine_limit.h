// Whether the ranks of a run fit this machine. The rules know no machine; commands that run do.
#pragma once

#include <optional>

#include "weft/measure/memory/memory_room.h"
#include "weft/rules/missing.h"

namespace weft::cli {

// Whether ranks keep anything in host memory beside that of their device: what is offloaded, and
// copies to save.
bool uses_host_beside(const config::Config& config);

// What the ranks of one machine need at least, where they compute on its cores: weights, gradients,
// optimizer state and kept activations. Buffers on the wire and inside a node come
// on top. Takes no dry step.
std::size_t least_need(const config::Config& config, const measure::HostRoom& host);

// Whether that, and what comes on top, is surely no more than there is: nothing need be counted.
bool is_ample(const config::Config& config, const measure::MemoryRoom& room);
// Whether a dry step of the run takes little memory itself: it holds the tokens of a micro-batch.
bool is_countable(const config::Config& config);

// What is wrong where the ranks are larger than what is free of the machine's memory: all of a rank
// on the machine's cores; what is offloaded, its staging buffers and the copy of an asynchronous
// save of a rank on a GPU, counted by a dry step. Of a GPU's own memory nothing is said.
std::optional<rules::Missing> machine_limit(const config::Config& config);

}  // namespace weft::cli
