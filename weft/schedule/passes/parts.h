// Pieces split into their parts (piece_parts.h), each a node with its own lane, dependencies,
// gradients and kept bytes, so that other passes can move, exchange or recompute a part.
#pragma once

#include <span>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The anatomy in which these pieces are their parts. What has no parts, or none of these pieces,
// stays as it is.
Anatomy with_parts(Anatomy anatomy, std::span<const Piece> pieces);

// A training order of whole pieces as one of parts, `split` being its anatomy with parts: where a
// node stood, its parts stand one after the other. Over any order.
Graph split_parts(const Graph& graph, const Anatomy& split, int micro_batches);

}  // namespace weft::schedule
