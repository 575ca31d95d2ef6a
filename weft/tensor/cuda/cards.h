// Checks of a GPU for this process: the driver, the visible GPUs, and the kernels that this build
// has for them. Every error names the fix.
#pragma once

#include <string_view>

namespace weft::tensor::cuda {

// Number of visible GPUs, at least 1. Must be the first CUDA call of a process, because it sets how
// many streams can run concurrently. Throws SystemError if the driver is missing or too old, or
// shows no GPU.
int count_cards();

// GPU of a rank: its local rank modulo the number of visible GPUs.
int card_of(int local_rank);

// Throws SystemError unless this build has kernels for the current GPU, number `ordinal`, and the
// GPU can be used now.
void check_kernels(int ordinal);

// Architectures with kernels in this build: "90a", "80 90a".
std::string_view built_for();

}  // namespace weft::tensor::cuda
