// How much a rank keeps for the backward, as its graph is issued.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// What a micro-batch brings to the layer of a node.
using LoadOf = std::function<Load(const Node&)>;

// The bytes of kept activations when each entry of a training step has been issued. What a piece
// keeps is counted from its forward to its last gradient, but for what it drops in between where it
// is recomputed or offloaded; its output, which the next piece keeps as its input, to that one's
// last gradient. Buffers that live inside a node or between the nodes of one turn, and those on the
// wire, come on top.
std::vector<std::int64_t> kept_after_each(const Graph& graph,
                                          const Anatomy& anatomy,
                                          const LoadOf& load_of);

// The most of it at any time, where every micro-batch brings this `load` to every MoE layer.
std::int64_t activation_mark(const Graph& graph, const Anatomy& anatomy, const Load& load);

}  // namespace weft::schedule
