// Verified before it runs: what an order must satisfy, whoever wrote it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// One rank's graph: waits name earlier entries; every node the anatomy asks for is there exactly
// once and no other, on its lane; every required dependency follows from lanes and waits. Returns
// what is wrong, naming nodes.
std::vector<std::string> verify(const Graph& graph,
                                const Anatomy& anatomy,
                                int micro_batches,
                                Pass pass);

// All ranks together: members of a group issue the same collectives in the same order, and the
// union of the graphs, each collective merged into one node, has no cycle: it cannot deadlock.
// members(rank, lane) gives the group that a collective of that rank and lane runs in.
using MembersOf = std::function<std::vector<int>(int rank, Lane lane)>;
std::vector<std::string> verify_union(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members);

}  // namespace weft::schedule
