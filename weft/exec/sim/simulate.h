// The clock: a step's graphs simulated instead of executed.
//
// As in exec/real, one host thread a rank issues the graph in order. A host node blocks it until
// what the node waits for is over, then for the node's cost. Any other node starts once it is
// issued, its lane is free and its waits are over; where compute is the only lane besides the host,
// the host itself runs it. Where several ranks meet, each arrives when it would start; the
// transfers start when all have arrived, and a member is done when its own are. A send is over when
// it is received.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/exec/sim/step.h"

namespace weft::exec::sim {

struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const Interval&) const = default;
};

struct Result {
  std::int64_t step_ns = 0;  // until every rank's last entry is over
  // By rank and entry. As in a trace, the wait of a host node and the wait for other members are
  // inside.
  std::vector<std::vector<Interval>> entries;
  // By rank and lane: time spent on work; waits for events and for other members are not in it.
  std::vector<std::array<std::int64_t, schedule::kLanes>> busy_ns;

  double step_seconds() const { return static_cast<double>(step_ns) * 1e-9; }
};

// ConfigError naming who waits for whom where the ranks come to a standstill.
Result simulate(const SimulatedStep& step);

}  // namespace weft::exec::sim
