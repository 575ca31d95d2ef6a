// Verification of the orders of all ranks together.
#pragma once

#include <functional>
#include <vector>

#include "weft/schedule/fault.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Verifies all ranks together. Members of a group issue the same operations in the same order;
// sends match the order of their receives. The union of the graphs, with each operation merged into
// one node, has no cycle: it cannot deadlock.
//
// members(rank, entry) gives the ranks of an entry's operation, including itself; for a send or a
// receive the sender, then the receiver. "Ranks" may be classes of ranks with one graph (the stages
// of a pipeline): a cycle among ranks is a cycle among their classes.
using MembersOf = std::function<std::vector<int>(int rank, const Entry& entry)>;
std::vector<Fault> verify_union(const std::vector<const Graph*>& graphs, const MembersOf& members);

// For each entry that receives: sends of the same rank, at most one per lane, that have ended when
// it ends; empty for other entries. A message proves them complete, because its sender had received
// them before.
using SendsOver = std::vector<std::vector<int>>;
SendsOver sends_over(const std::vector<const Graph*>& graphs, const MembersOf& members, int rank);

// For backends that run a rank's collectives one by one across groups and lanes, as NCCL may.
// Verifies that one order of all collectives exists that every rank follows. Sends and receives are
// separate: each direction has its own channel.
std::vector<Fault> verify_calls(const std::vector<const Graph*>& graphs, const MembersOf& members);

}  // namespace weft::schedule
