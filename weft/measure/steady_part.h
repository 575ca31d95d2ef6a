// The part of a pipeline's step in which forwards and backwards take turns: between warm-up, with
// forwards alone, and cool-down, with backwards alone.
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::measure {

// Of a rank from the start of its first backward to the end of its last forward: the mean over the
// ranks, in the traced run where that is shortest; 0 where no rank has both.
double steady_seconds(std::span<const trace::Timeline> timelines);

}  // namespace weft::measure
