// A simulated step as exec/real would have traced it.
#pragma once

#include <limits>
#include <vector>

#include "weft/exec/sim/simulate.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// A part of a step.
struct Window {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();

  bool sees(const Interval& interval) const {
    return interval.end_ns >= from_ns && interval.begin_ns <= to_ns;
  }
};

// By rank: a span a node, of the same names, lanes and kinds as exec/real's, and inside it one
// operation: communication, or of the kind that the node's cost gives. Times are from the start of
// the step. Only what the window sees is written.
std::vector<trace::Timeline> timelines_of(const SimulatedStep& step,
                                          const Result& result,
                                          const Window& window = {});

}  // namespace weft::exec::sim
