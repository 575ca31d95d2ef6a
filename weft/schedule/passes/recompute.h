// Recomputation: what a piece or a part keeps for the backward is dropped after the forward and
// made again, by a node of direction R, before the first gradient that reads it. The rows that
// experts read are made again by moving them again: `permute` and `dispatch` run again too.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The anatomy in which these pieces (all parts, where they are split) or parts are recomputed in
// every layer that has them, or in the first `layers` of each chunk. ConfigError where one remakes
// nothing.
Anatomy with_recomputation(Anatomy anatomy,
                           std::span<const PieceName> names,
                           std::optional<int> layers = std::nullopt);

// The same of an anatomy whose layers are recomputed whole: of every `group` layers in a row of a
// chunk the first alone keeps its input, and all but the last make their output again.
Anatomy with_grouped_layers(Anatomy anatomy, int group);

// The parts that are recomputed whatever the config says: what tensor-parallel ranks gathered.
std::vector<PieceName> always_recomputed(Anatomy& anatomy);

// A training order with the R nodes that `recomputing`, its anatomy with recomputation, asks for:
// each as late as it may stand.
Graph recompute(const Graph& graph, const Anatomy& recomputing, int micro_batches);

}  // namespace weft::schedule
