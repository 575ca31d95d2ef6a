// Spans of a rank grouped by traced run, in one pass over the timeline.
#pragma once

#include <map>
#include <vector>

#include "weft/trace/span.h"

namespace weft::trace {

// in the timeline's order; the timeline must outlive them
using RunSpans = std::vector<const Span*>;

// Runs without a span of this rank are absent.
std::map<int, RunSpans> spans_by_run(const Timeline& timeline);

}  // namespace weft::trace
