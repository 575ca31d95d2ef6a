// Mutual slowdown of compute and communication, from traces of one model in two orders: alternating
// and concurrent.
#pragma once

#include <vector>

#include "weft/trace/span.h"

namespace weft::plan {

// Relative slowdown under full overlap, from 0 to 1. Larger values, and values from little overlap,
// have other causes.
struct SlowDown {
  double beside_communication = 0;  // compute
  double beside_compute = 0;        // communication
};

// Slowdown over the nodes of both traces.
SlowDown slow_down(const std::vector<trace::Timeline>& apart,
                   const std::vector<trace::Timeline>& beside);

// Relative slowdown of an order's compute in `beside`, where all of it overlapped with other work.
double slower_compute(const std::vector<trace::Timeline>& apart,
                      const std::vector<trace::Timeline>& beside);

}  // namespace weft::plan
