#include "weft/schedule/releases.h"

#include <algorithm>

#include "weft/base/casts.h"

namespace weft::schedule {

using base::at;

std::optional<int> releasing_layer(const Anatomy& anatomy, int layer, const PieceName& name) {
  const Chunk& chunk = chunk_of_layer(anatomy, layer);
  std::optional<int> last;
  for (int later = layer + 1; later < chunk.end_layer(); ++later) {
    for (const PieceAnatomy& piece : anatomy.layers[at(later)]) {
      if (!piece.is(name)) continue;
      last = later;
      if (piece.is_offloaded) return last;
    }
  }
  return last;
}

std::optional<Node> released_by(const Anatomy& anatomy, const Node& forward) {
  const PieceName name{forward.piece, forward.part};
  const bool may_release =
      forward.direction == Direction::F &&
      std::ranges::find(anatomy.offloaded_pieces, name) != anatomy.offloaded_pieces.end();
  if (!may_release) return std::nullopt;
  const PieceAnatomy& own = piece_of(anatomy, forward);
  if (own.steps && forward.slice != own.steps->first) return std::nullopt;
  const int first = chunk_of_layer(anatomy, forward.layer).first_layer;
  for (int layer = forward.layer - 1; layer >= first; --layer) {
    for (const PieceAnatomy& piece : anatomy.layers[at(layer)]) {
      if (!piece.is(name) || !piece.is_offloaded) continue;
      if (releasing_layer(anatomy, layer, name) != forward.layer) return std::nullopt;
      Node made = forward;
      made.layer = layer;
      if (own.steps) made.slice = kNone;
      return made;
    }
  }
  return std::nullopt;
}

}  // namespace weft::schedule
