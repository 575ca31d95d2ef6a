// How long a node takes to start after what it waited for on another lane.
#pragma once

#include <vector>

#include "weft/trace/span.h"

namespace weft::plan {

// The median over traced nodes that a wait held up, and not the node before them on their lane.
double waking_seconds(const std::vector<trace::Timeline>& timelines);

}  // namespace weft::plan
