// Steady part of a pipeline's step, with alternating forwards and backwards: between warm-up
// (forwards only) and cool-down (backwards only).
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::measure {

// Time of a rank from its first backward to the end of its last forward: mean over the ranks, in
// the traced run with the shortest mean. 0: no rank has both.
double steady_seconds(std::span<const trace::Timeline> timelines);

}  // namespace weft::measure
