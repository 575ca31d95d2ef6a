// Emulated links of a given communication time. Measured times may include other programs' work, so
// each choice is limited by the run's own compute nodes.
#pragma once

#include <functional>

#include "weft/grid/fabric.h"

namespace weft::measure {

// Limits of emulated links, in bytes per second.
inline constexpr double kSlowestLink = 1e3, kFastestLink = 1e12;

grid::Fabric links_of(double bytes_per_second);

// Bisects the bandwidth for a given communication time.
grid::Fabric links_for(double communication_seconds,
                       const std::function<double(const grid::Fabric&)>& seconds_over);

// Step time without waits for a core: at most twice the compute nodes' time. A node's time is a
// median, which other programs distort less than a step's. compute_seconds <= 0: unknown.
double undisturbed_seconds(double step_seconds, double compute_seconds);

// Links adjusted to the measured time. The measurement is a difference of two times, which other
// programs can distort to any value, even 0. Each correction is therefore limited, and all of them
// together keep half the bandwidth of `found`, the links before the first correction.
grid::Fabric corrected(const grid::Fabric& links,
                       const grid::Fabric& found,
                       double measured,
                       double communication_seconds);

}  // namespace weft::measure
