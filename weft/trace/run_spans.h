// Spans of a rank grouped by traced run, in one pass over the timeline.
#pragma once

#include <map>
#include <vector>

#include "weft/trace/span.h"

namespace weft::trace {

using RunSpans = std::vector<const Span*>;  // in the timeline's order; the timeline outlives them

// Runs without a span of this rank are absent.
std::map<int, RunSpans> spans_by_run(const Timeline& timeline);

}  // namespace weft::trace
