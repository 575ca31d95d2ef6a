// What a run has to fit in: the machine at hand, or the one that hardware.* names.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/kernels/gpu_report.h"
#include "weft/measure/memory/memory_room.h"

namespace weft::cli {

// Ranks of the run that share this machine: threads of this process, or the processes that the
// launcher started here; without one, as many as would be.
std::int64_t ranks_here(const config::Config& config);

// Of these cards, what a rank has of the one with the least for it, where so many ranks take them
// in turn: what is free now, less what a run cannot have (derive::reserved_gb; of a small card at
// most a sixteenth). Nothing where no card can be used.
std::optional<measure::DeviceRoom> device_room(const std::vector<kernels::Gpu>& cards,
                                               std::int64_t ranks,
                                               config::CommBackend backend);

// What is free of this machine's memory alone.
measure::MemoryRoom host_room_here(const config::Config& config);
// Of this machine: what is free of its memory, and of its cards where the run is on GPUs and there
// are any; else of the GPU that hardware.* names.
measure::MemoryRoom room_here(const config::Config& config);

// What a run is judged by that does not start: the GPU of hardware.* and the machine around it;
// else this machine.
measure::MemoryRoom judged_room(const config::Config& config);

}  // namespace weft::cli
