// Input of a simulation: every rank's graph, the members of each operation, and all costs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "weft/grid/fabric.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify_union.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// Cost of a node. Compute or host node: its duration without waits. Communication node: its
// duration besides the wire, from the arrival of the last member.
struct Cost {
  double seconds = 0;
  trace::SpanKind kind = trace::SpanKind::Gemm;  // kind of a compute node's work
  // fraction of a compute node's seconds, at its beginning, in which the device waits for launches
  double launch_share = 0;

  bool operator==(const Cost&) const = default;
};
using CostOf = std::function<Cost(int rank, int entry)>;

// Time to issue and to wake on a real machine. All 0: ideal.
struct Overheads {
  double issue_seconds = 0;  // host time per node; a node cannot start before it is issued
  double wake_seconds = 0;   // from the end of awaited work on another lane to the waiting node
  double next_seconds = 0;   // compute node: gaps between its operations, and before the next node
};

// Transfers of an operation; `meeting` is the operation's name. A send's first member is the
// sender.
using TransfersOf = std::function<std::vector<grid::Transfer>(const schedule::Node& meeting,
                                                              std::span<const int> members)>;

struct Wire {
  grid::Fabric fabric;
  TransfersOf transfers;
};

struct SimulatedStep {
  std::vector<const schedule::Graph*> graphs;  // by rank; ranks may share one
  schedule::MembersOf members;
  CostOf cost;
  std::optional<Wire> wire;  // nullopt: communication takes its cost only
  Overheads overheads;
};

}  // namespace weft::exec::sim
