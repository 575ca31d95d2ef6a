// Wake-up latency of a node after a wait for another lane.
#pragma once

#include <vector>

#include "weft/trace/span.h"

namespace weft::plan {

// Median over traced nodes that waited for another lane and not for the previous node of theirs.
double waking_seconds(const std::vector<trace::Timeline>& timelines);

}  // namespace weft::plan
