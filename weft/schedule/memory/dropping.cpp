#include "weft/schedule/memory/dropping.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/piece_nodes.h"
#include "weft/schedule/releases.h"

namespace weft::schedule {

// Counts down a node's open conditions: its readers, its copy, and its releasing layer. True: the
// last one.
bool Dropping::is_last(const Node& made, const PieceAnatomy& piece) {
  const auto [left, is_new] = readers_left_.try_emplace(made, 0);
  if (is_new) {
    left->second = forward_readers(anatomy_, made).size();
    if (piece.is_offloaded) {
      const bool is_released =
          releasing_layer(anatomy_, made.layer, {made.piece, made.part}).has_value();
      left->second += is_released ? 2 : 1;
    }
  }
  if (--left->second > 0) return false;
  readers_left_.erase(left);
  return true;
}

std::vector<Node> Dropping::before(const Node& node) {
  const std::optional<Node> released = released_by(anatomy_, node);
  if (!released || !is_last(*released, piece_of(anatomy_, *released))) return {};
  return {*released};
}

// Handles the readers of a piece of `layer`.
void Dropping::after_reader(const Node& forward,
                            const PieceAnatomy& piece,
                            int layer,
                            std::vector<Node>& over) {
  if (!piece.is_recomputed_or_offloaded() || !may_read(anatomy_, forward, piece, layer)) return;
  Node away = forward;
  away.layer = layer;
  away.direction = piece.is_offloaded ? Direction::O : Direction::R;
  for (Node made : nodes_of(anatomy_, piece, away)) {
    made.direction = Direction::F;
    const std::vector<Node> readers = forward_readers(anatomy_, made);
    if (std::ranges::find(readers, forward) == readers.end()) continue;
    if (is_last(made, piece)) over.push_back(made);
  }
}

void Dropping::after_forward(const Node& forward, std::vector<Node>& over) {
  for (const PieceAnatomy& piece : pieces_beside(anatomy_, forward)) {
    after_reader(forward, piece, forward.layer, over);
  }
  const bool has_layer = forward.layer != kNone;
  if (!has_layer || forward.layer == chunk_of_layer(anatomy_, forward.layer).first_layer) return;
  const int before = forward.layer - 1;
  after_reader(forward, anatomy_.layers[base::at(before)].back(), before, over);
}

std::vector<Node> Dropping::after(const Node& node) {
  std::vector<Node> over;
  if (node.direction == Direction::F) after_forward(node, over);
  if (node.direction == Direction::O) {
    Node made = node;
    made.direction = Direction::F;
    if (is_last(made, piece_of(anatomy_, node))) over.push_back(made);
  }
  return over;
}

}  // namespace weft::schedule
