// Recomputation: bytes that a piece or a part keeps are dropped after the forward. A node of
// direction R makes them again before the first gradient that reads them. Rows of experts are made
// again by sending them again: `permute` and `dispatch` also run again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Anatomy that recomputes these pieces (all parts, if split) or parts: in every layer, or in the
// first `layers` of each chunk. Throws ConfigError if one has nothing to recompute.
Anatomy with_recomputation(Anatomy anatomy,
                           std::span<const PieceName> names,
                           std::optional<int> layers = std::nullopt);

// Anatomy that recomputes whole layers: of every `group` consecutive layers, only the first keeps
// its input, and all but the last recompute their output.
Anatomy with_grouped_layers(Anatomy anatomy, int group);

// Parts that are always recomputed: gathered tokens of tensor-parallel ranks, and keys of other
// context-parallel ranks.
std::vector<PieceName> always_recomputed(Anatomy& anatomy);

// Adds the R nodes of `recomputing` to a training order, each as late as possible.
Graph recompute(const Graph& graph, const Anatomy& recomputing, int micro_batches);

}  // namespace weft::schedule
