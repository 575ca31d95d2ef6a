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
                                StepKind kind);

// All ranks together: those of a group issue the same operations in the same order, a send's in the
// order of the receives it meets, and the union of the graphs, each operation merged into one node,
// has no cycle: it cannot deadlock.
//
// members(rank, entry) gives the ranks that take part in an entry's operation, itself among them;
// of a send or a receive first the sender, then the receiver. "Ranks" may be kinds of ranks that
// have one graph (the stages of a pipeline): a circle among ranks is a circle among their kinds.
using MembersOf = std::function<std::vector<int>(int rank, const Entry& entry)>;
std::vector<std::string> verify_union(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members);

// For each entry of a graph: the entries of the same rank, one a lane at most, that send and are
// over when it is; empty for all that do not receive. What a message tells of others: its sender
// had taken them before.
using SendsOver = std::vector<std::vector<int>>;
SendsOver sends_over(const std::vector<const Graph*>& graphs, const MembersOf& members, int rank);

// For a backend that takes a rank's collectives one after the other, whatever their group and lane,
// as NCCL does where it cannot run two at once: there is one order of all collectives of the world
// that every rank calls its own in. Sends and receives are apart: each direction has its own way.
std::vector<std::string> verify_calls(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members);

}  // namespace weft::schedule
