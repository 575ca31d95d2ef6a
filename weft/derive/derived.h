// Numbers that follow from a config, with parameters.h and flops.h. They assume what validate.h
// checks, except where said.
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/derive/flops.h"
#include "weft/derive/parameters.h"
#include "weft/grid/fabric.h"
#include "weft/grid/layout.h"

namespace weft::derive {

// The layout the config asks for; its world is runtime.world_size or the fewest ranks that serve
// the sizes. The layout may be illegal: Grid and validate() say so.
grid::Layout layout_of(const config::Config& config);

// Whether the run is for GPUs; without any hardware.* it is for CPU ranks.
bool is_on_gpu(const config::Config& config);

// The links between the ranks: emulated where they are not free.
grid::Fabric fabric_of(const config::Config& config);

// Micro-batches of one rank in one step, under `dp` data-parallel ranks.
std::int64_t micro_batches(const config::TrainConfig& train, std::int64_t dp);

std::int64_t tokens_per_step(const config::Config& config);

// Whether checkpoints are written while the run goes on.
bool saves_beside(const config::Config& config);

}  // namespace weft::derive
