// How much slower compute and communication are beside each other: from traces of one model in two
// orders, one in which they take turns and one in which they do not.
#pragma once

#include <vector>

#include "weft/trace/span.h"

namespace weft::plan {

// Each as a part of itself, where all of it is beside the other. From 0 to 1: what is above is
// something else, and so is what only a little of is beside the other.
struct SlowDown {
  double beside_communication = 0;  // compute
  double beside_compute = 0;        // communication
};

// Of the nodes that both have.
SlowDown slow_down(const std::vector<trace::Timeline>& apart,
                   const std::vector<trace::Timeline>& beside);

// How much longer the compute of one order takes in `beside`, all of which was beside something
// else, as a part of itself.
double slower_compute(const std::vector<trace::Timeline>& apart,
                      const std::vector<trace::Timeline>& beside);

}  // namespace weft::plan
