// Walls and exposure of GPUs from their kernels, with the definitions of walls.h and exposure.h.
//
// Kernels, unlike nodes, do not tell what they wait for, nor what may run beside them. Compute is
// any kernel on any stream that does not communicate. The host is late while the next compute
// kernel is not launched. Other exposed time counts as no_partner and includes waits for other
// ranks.
#pragma once

#include <vector>

#include "weft/trace/device_trace.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/walls.h"

namespace weft::trace {

struct DeviceTimes {
  Exposure exposure;
  std::vector<RankWalls> walls;
};

// Means over the steps that the profiler recorded.
DeviceTimes analyse_devices(const DeviceTraces& traces);

}  // namespace weft::trace
