// Check of a run's ranks against this machine, for commands that run; the rules know no machine.
#pragma once

#include <optional>

#include "weft/measure/memory/memory_room.h"
#include "weft/rules/missing.h"

namespace weft::cli {

// True if ranks use host memory besides device memory: offloaded tensors, and save copies.
bool uses_host_beside(const config::Config& config);

// Least memory of one machine's ranks that compute on its cores: weights, gradients, optimizer
// state and kept activations. Buffers in transit and inside a node come on top. Needs no dry step.
std::size_t least_need(const config::Config& config, const measure::HostRoom& host);

// True if this need and the additions surely fit, so that no counting is necessary.
bool is_ample(const config::Config& config, const measure::MemoryRoom& room);
// True if a dry step of the run needs little memory itself: it holds the tokens of a micro-batch.
bool is_countable(const config::Config& config);

// Error if the ranks exceed the machine's free memory, counted by a dry step. On cores the whole
// rank counts; on a GPU offloaded tensors, staging buffers and the copy of an asynchronous save. A
// GPU's own memory is not checked.
std::optional<rules::Missing> machine_limit(const config::Config& config);

}  // namespace weft::cli
