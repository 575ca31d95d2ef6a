// Simulates the graphs of a step instead of executing them.
//
// As in exec/real, one host thread per rank issues the graph in order. A host node blocks it until
// the node's waits are complete, then for the node's cost. Any other node starts when it is issued,
// its lane is free and its waits are complete. If compute is the only lane besides the host, the
// host itself runs it. In an operation of several ranks, each rank arrives when its node would
// start. Transfers start when all have arrived, and a member ends with its own transfers. A send
// ends when it is received.
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
  std::int64_t step_ns = 0;  // end of the last entry of any rank
  // By rank and entry. As in a trace, an interval includes a host node's wait and the wait for
  // other members.
  std::vector<std::vector<Interval>> entries;
  // By rank and lane: time spent on work, without waits for events and other members.
  std::vector<std::array<std::int64_t, schedule::kLanes>> busy_ns;

  double step_seconds() const { return static_cast<double>(step_ns) * 1e-9; }
};

// Throws ConfigError if the ranks deadlock, naming the chain of waits.
Result simulate(const SimulatedStep& step);

}  // namespace weft::exec::sim
