// Activations that a rank keeps for the backward, as its graph is issued.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Load of the layer and micro-batch of a node.
using LoadOf = std::function<Load(const Node&)>;

// Bytes of kept activations after each entry of a training step. A piece's bytes count from its
// forward to its last gradient, except while dropped by recomputation or offload. Its output, the
// next piece's input, counts to the next piece's last gradient. Excluded: buffers within a node or
// between the nodes of a turn, and buffers in flight.
std::vector<std::int64_t> kept_after_each(const Graph& graph,
                                          const Anatomy& anatomy,
                                          const LoadOf& load_of);

// Maximum of the kept bytes, if every micro-batch brings `load` to every MoE layer.
std::int64_t activation_mark(const Graph& graph, const Anatomy& anatomy, const Load& load);

}  // namespace weft::schedule
