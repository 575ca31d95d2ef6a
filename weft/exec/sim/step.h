// A step to be simulated: every rank's graph, who meets whom, and what everything costs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "weft/grid/fabric.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

// What a node costs. A compute or host node: its duration, without what it waits for. A
// communication node: its duration besides the wire, from when every member has arrived.
struct Cost {
  double seconds = 0;
  trace::SpanKind kind = trace::SpanKind::Gemm;  // of a compute node's work
  double launch_share = 0;  // of a compute node's seconds, first: the device waits for launches

  bool operator==(const Cost&) const = default;
};
using CostOf = std::function<Cost(int rank, int entry)>;

// What issuing and waking take on a real machine. None gives the ideal.
struct Overheads {
  double issue_seconds = 0;  // the host, a node; a node cannot start before it is issued
  double wake_seconds = 0;   // from the end of what another lane did to the node that waited for it
  double next_seconds = 0;  // a compute node: between its operations, and until the next one begins
};

// What an operation of several ranks sends between them; `meeting` is the name under which they
// meet, and of a send the first member is the sender.
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
  std::optional<Wire> wire;  // none: communication takes its cost and no more
  Overheads overheads;
};

}  // namespace weft::exec::sim
