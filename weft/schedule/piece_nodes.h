// Nodes of a piece, visited without a vector of nodes.
#pragma once

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Calls `visit` with each of nodes_of(anatomy, piece, place), in that order.
template <typename Visit>
void each_node_of(const Anatomy& anatomy,
                  const PieceAnatomy& piece,
                  const Node& place,
                  const Visit& visit) {
  Node node = place;
  node.piece = piece.piece;
  node.part = piece.part;
  node.slice = kNone;
  if (piece.runs_in_steps(place.direction)) {
    for (node.slice = piece.steps->first; piece.steps->has(node.slice); ++node.slice) visit(node);
    return;
  }
  const int slices = slices_of(anatomy, piece);
  if (slices == 1) return visit(node);
  for (node.slice = 0; node.slice < slices; ++node.slice) visit(node);
}

}  // namespace weft::schedule
