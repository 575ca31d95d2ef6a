// The spans of a rank by traced run: each span is looked at once, however many runs there are.
#pragma once

#include <map>
#include <vector>

#include "weft/trace/span.h"

namespace weft::trace {

using RunSpans = std::vector<const Span*>;  // in the timeline's order; the timeline outlives them

// By run. A run without a span of this rank is not there.
std::map<int, RunSpans> spans_by_run(const Timeline& timeline);

}  // namespace weft::trace
