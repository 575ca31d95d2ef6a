// Walls and exposure of GPUs from their kernels, as walls.h and exposure.h tell those of ranks.
//
// A kernel is no node: nothing says what it waits for, nor what may run beside it. Compute is any
// kernel that does not communicate, on whatever stream. The host is late while the next of them is
// not launched; other exposed time stands under no_partner, and waiting for other ranks is inside
// it.
#pragma once

#include <vector>

#include "weft/trace/device_trace.h"
#include "weft/trace/exposure.h"
#include "weft/trace/walls.h"

namespace weft::trace {

struct DeviceTimes {
  Exposure exposure;
  std::vector<RankWalls> walls;
};

// Means over the steps that the profiler was told of.
DeviceTimes analyse_devices(const DeviceTraces& traces);

}  // namespace weft::trace
