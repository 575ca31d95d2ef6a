// Fit of rates and factors to traces.
#pragma once

#include <optional>
#include <vector>

#include "weft/plan/hardware/calibration.h"
#include "weft/trace/span.h"

namespace weft::plan {

// Run without emulated links: traced steps, and the untraced time of a step.
struct CalibrationRun {
  const config::Config& config;
  const std::vector<trace::Timeline>& timelines;
  double seconds = 0;
};

// Cores of compute: see `cores` and `turn` in MachineRates.
struct HostCores {
  double count = 0;
  double turn_seconds = 0;
};

// `overlapped`: the same run in an order with communication under compute, which gives the mutual
// slowdown.
Calibration calibrate(const CalibrationRun& plain,
                      const std::optional<CalibrationRun>& overlapped,
                      const HostCores& cores);

}  // namespace weft::plan
