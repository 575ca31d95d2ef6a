#include "weft/schedule/passes/parts.h"

#include <algorithm>
#include <map>
#include <ranges>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Nodes of the parts of a node, in execution order; the node itself if it is not split.
std::vector<Node> parts_of(const Anatomy& split, const Node& node) {
  const Scope scope = row_of(node.piece).scope;
  const bool can_be_split = scope == Scope::Layer || scope == Scope::ChunkEnd;
  if (!can_be_split || node.part != Part::None) return {node};
  std::vector<Node> nodes;
  for (const PieceAnatomy& piece : pieces_beside(split, node)) {
    const bool runs = node.direction != Direction::W || piece.has_weight_gradient();
    if (piece.piece != node.piece || !runs) continue;
    Node part = node;
    part.part = piece.part;
    nodes.push_back(part);
  }
  if (node.direction != Direction::F) std::ranges::reverse(nodes);
  return nodes;
}

// Pieces that follow a split piece follow its last part. If that is a stepwise exchange, they also
// follow the part before it, because one step has no exchange.
std::vector<PieceName> last_parts_of(const PieceAnatomy& piece) {
  const PieceAnatomy& last = piece.parts.back();
  std::vector<PieceName> names{{piece.piece, last.part}};
  if (last.is_exchange_in_steps())
    names.insert(names.begin(), last.after.begin(), last.after.end());
  return names;
}

}  // namespace

Anatomy with_parts(Anatomy anatomy, std::span<const Piece> pieces) {
  for (std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
    std::vector<PieceAnatomy> detailed;
    std::map<Piece, std::vector<PieceName>> last_parts;  // pieces that are split here
    for (PieceAnatomy& piece : *list) {
      const bool is_named = std::ranges::find(pieces, piece.piece) != pieces.end();
      if (!is_named || piece.parts.empty()) {
        detailed.push_back(std::move(piece));
        continue;
      }
      last_parts[piece.piece] = last_parts_of(piece);
      std::ranges::move(piece.parts, std::back_inserter(detailed));
    }
    // Followers of a piece follow its last part; so do parts that are split later.
    const auto comes_after_parts = [&](PieceAnatomy& piece) {
      std::vector<PieceName> after;
      for (const PieceName& before : piece.after) {
        const auto split = last_parts.find(before.piece);
        const bool is_split = before.part == Part::None && split != last_parts.end();
        if (is_split) {
          after.insert(after.end(), split->second.begin(), split->second.end());
        } else {
          after.push_back(before);
        }
      }
      piece.after = std::move(after);
    };
    for (PieceAnatomy& piece : detailed) {
      comes_after_parts(piece);
      std::ranges::for_each(piece.parts, comes_after_parts);
    }
    *list = std::move(detailed);
  }
  return anatomy;
}

Graph split_parts(const Graph& graph, const Anatomy& split, int micro_batches) {
  NamedEntries entries;
  for (const NamedEntry& entry : named_entries(graph)) {
    std::vector<Node> waits;
    for (const Node& wait : entry.waits) {
      std::ranges::copy(parts_of(split, wait), std::back_inserter(waits));
    }
    for (const Node& part : parts_of(split, entry.node)) {
      entries.push_back({.node = part, .waits = waits});
    }
  }
  return write(entries, split, micro_batches);
}

}  // namespace weft::schedule
