// Numbers derived from a config, together with parameters.h and flops.h. They assume a config that
// rules/validate.h accepts, unless a comment says otherwise.
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/derive/flops.h"
#include "weft/derive/parameters.h"
#include "weft/grid/fabric.h"
#include "weft/grid/layout.h"

namespace weft::derive {

// Layout of the config; its world is runtime.world_size, or the minimum for the sizes. The layout
// may be illegal: Grid and validate() report that.
grid::Layout layout_of(const config::Config& config);

// True for a GPU run; without hardware.* keys the run is for CPU ranks.
bool is_on_gpu(const config::Config& config);

// Links between the ranks; emulated unless free.
grid::Fabric fabric_of(const config::Config& config);

// Micro-batches per rank and step, with `dp` data-parallel ranks.
std::int64_t micro_batches(const config::TrainConfig& train, std::int64_t dp);

std::int64_t tokens_per_step(const config::Config& config);

// True if checkpoints are written while the run goes on.
bool saves_beside(const config::Config& config);

}  // namespace weft::derive
