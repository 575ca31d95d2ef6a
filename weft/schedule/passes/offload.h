// Activation offload: bytes that a part keeps are copied to host memory after its forward
// (direction O). They return before the first gradient that reads them (direction I). Each
// direction has its own copy lane, under the compute of other layers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// True if layer number `place`, from 0, of the layers that can offload a part does so; the share is
// spread evenly.
bool is_offloaded_nth(std::size_t place, double share);

struct PiecePlace {
  int layer = 0;
  std::size_t index = 0;  // index in Anatomy::layers[layer]
};

// Pieces of that name in a chunk that can be offloaded, by layer. Excluded: recomputed pieces, the
// last layer before the head, whose backward follows at once, and the chunk's output. Applied after
// with_recomputation.
std::vector<PiecePlace> offloadable(const Anatomy& anatomy,
                                    const Chunk& chunk,
                                    const PieceName& name);

// Anatomy with these parts offloaded, in their share of the eligible layers of each chunk, spread
// evenly.
Anatomy with_offloading(Anatomy anatomy, std::span<const OffloadedPart> parts);

// Adds the O and I nodes of `offloading` to a training order. Each O follows its forward. Each I
// comes before the gradient of the previous offloaded part, or earlier (returns_ahead.h): it has at
// least the time between two of them. Applied after all passes that move compute. `load`: per
// micro-batch.
Graph offload(const Graph& graph, const Anatomy& offloading, int micro_batches, const Load& load);

}  // namespace weft::schedule
