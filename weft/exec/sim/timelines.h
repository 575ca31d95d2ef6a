// Timelines of a simulated step, in the form of exec/real's traces.
#pragma once

#include <limits>
#include <vector>

#include "weft/exec/sim/simulate.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// Time window of a step.
struct Window {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();

  bool overlaps(const Interval& interval) const {
    return interval.end_ns >= from_ns && interval.begin_ns <= to_ns;
  }
};

// By rank: one span per node, with the names, lanes and kinds of exec/real. Each contains one
// operation: communication, or the kind of the node's cost. Times are relative to the start of the
// step; only spans in the window are written.
std::vector<trace::Timeline> timelines_of(const SimulatedStep& step,
                                          const Result& result,
                                          const Window& window = {});

}  // namespace weft::exec::sim
