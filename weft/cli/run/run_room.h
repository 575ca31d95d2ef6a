// Memory available to a run: on this machine, or on the one that hardware.* names.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/kernels/gpu_report.h"
#include "weft/measure/memory/memory_room.h"

namespace weft::cli {

// Number of the run's ranks on this machine: threads of this process, or processes of the launcher.
// Without a launcher the number it would start.
std::int64_t ranks_here(const config::Config& config);

// Memory of a rank on the tightest of these GPUs, with ranks assigned to GPUs in turn: free memory
// minus the reserve (derive::reserved_gb; on a small GPU at most a sixteenth). nullopt: no usable
// GPU.
std::optional<measure::DeviceRoom> device_room(const std::vector<kernels::Gpu>& cards,
                                               std::int64_t ranks,
                                               config::CommBackend backend);

// Free memory of this machine alone.
measure::MemoryRoom host_room_here(const config::Config& config);
// Free memory of this machine, and of its GPUs if the run is on GPUs and some exist. Otherwise of
// the GPU in hardware.*.
measure::MemoryRoom room_here(const config::Config& config);

// Room for judging a run that does not start: the GPU of hardware.* and its machine; otherwise this
// machine.
measure::MemoryRoom judged_room(const config::Config& config);

}  // namespace weft::cli
