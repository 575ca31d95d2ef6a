// How much a rank keeps for the backward, as its graph is issued.
#pragma once

#include <cstdint>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The most bytes of kept activations at any time, where every micro-batch brings this
// `load` to every MoE layer. What a piece keeps is counted from its forward to its
// last gradient; its output, which the next piece keeps as its input, to the next layer's. Buffers
// that live inside a node, and those on the wire, come on top.
std::int64_t activation_mark(const Graph& graph, const Anatomy& anatomy, const Load& load);

}  // namespace weft::schedule
