// Splits pieces into their parts (block/block.h). Each part becomes a node with its own lane,
// dependencies, gradients and kept bytes. Other passes can move, exchange or recompute it.
#pragma once

#include <span>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Anatomy with these pieces split. Pieces without parts stay.
Anatomy with_parts(Anatomy anatomy, std::span<const Piece> pieces);

// Replaces nodes of a training order by their parts, one after the other; `split` is the anatomy
// with parts. Applicable to any order.
Graph split_parts(const Graph& graph, const Anatomy& split, int micro_batches);

}  // namespace weft::schedule
