// Starts the ranks of a run on the backend its config names.
#pragma once

#include "weft/comm/launch.h"
#include "weft/config/config.h"

namespace weft::train {

// Sets the process up (BLAS on one thread) and runs `function` on every rank; see comm/launch.h for
// how failures come back.
void launch(const config::Config& config, const comm::RankFunction& function);

}  // namespace weft::train
