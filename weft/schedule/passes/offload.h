// Offloading: what a part keeps for the backward is copied to the host's memory after its forward
// (direction O) and back before the first gradient that reads it (direction I), each way on its
// copy lane, under the compute of other layers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Whether of the layers of a chunk that may offload a part the one at `place`, from 0, does: as
// many as the share says, spread evenly.
bool is_offloaded_nth(std::size_t place, double share);

struct PiecePlace {
  int layer = 0;
  std::size_t index = 0;  // in Anatomy::layers[layer]
};

// The pieces of that name in a chunk that can be offloaded, by layer: neither recomputed, nor in
// the last layer in front of the head, which its backward follows at once, nor what the chunk
// itself hands on. After with_recomputation.
std::vector<PiecePlace> offloadable(const Anatomy& anatomy,
                                    const Chunk& chunk,
                                    const PieceName& name);

// The anatomy in which these parts are offloaded: in their share of the layers of each chunk that
// have them to offload, spread evenly.
Anatomy with_offloading(Anatomy anatomy, std::span<const OffloadedPart> parts);

// A training order with the O and I nodes that `offloading`, its anatomy with offloading, asks for:
// each O behind its forward, each I in front of the gradient of the offloaded part that came before
// it or earlier (returns_ahead.h), so that it has at least the time between two of them. After all
// passes that move compute. `load`: what a micro-batch brings.
Graph offload(const Graph& graph, const Anatomy& offloading, int micro_batches, const Load& load);

}  // namespace weft::schedule
