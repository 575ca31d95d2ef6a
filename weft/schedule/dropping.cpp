#include "weft/schedule/dropping.h"

#include <algorithm>

namespace weft::schedule {

std::vector<Node> Dropping::after(const Node& forward) {
  std::vector<Node> over;
  for (const PieceAnatomy& piece : pieces_beside(anatomy_, forward)) {
    if (!piece.is_recomputed) continue;
    Node again = forward;
    again.direction = Direction::R;
    for (Node made : nodes_of(anatomy_, piece, again)) {
      made.direction = Direction::F;
      const std::vector<Node> readers = forward_readers(anatomy_, made);
      if (std::ranges::find(readers, forward) == readers.end()) continue;
      const auto left = readers_left_.try_emplace(made, readers.size()).first;
      if (--left->second > 0) continue;
      readers_left_.erase(left);
      over.push_back(made);
    }
  }
  return over;
}

}  // namespace weft::schedule
