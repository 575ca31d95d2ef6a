#include "weft/schedule/passes/tensor_overlap.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Whether a node is a step of the input gradient that a gather's weight gradient belongs to, or of
// what that sends.
bool is_step_behind(const Anatomy& anatomy, const Node& gather, const Node& node) {
  if (node.direction != Direction::D || node.layer != gather.layer || node.piece != gather.piece ||
      node.micro_batch != gather.micro_batch) {
    return false;
  }
  const PieceAnatomy& piece = piece_of(anatomy, node);
  return piece.steps && piece.steps->exchange == gather.part;
}

void gather_before_products(NamedEntries& entries, const Anatomy& anatomy) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Node gather = entries[i].node;
    if (gather.direction != Direction::R || gather.part != Part::Gather) continue;
    std::size_t first = i;
    while (first > 0 && is_step_behind(anatomy, gather, entries[first - 1].node)) --first;
    const auto begin = entries.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(first),
                begin + static_cast<std::ptrdiff_t>(i),
                begin + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

bool is_first_for_projection(const Anatomy& anatomy, const Node& node) {
  return node.direction == Direction::D && node.piece == Piece::Attention &&
         node.part == Part::Scatter && node.slice == piece_of(anatomy, node).steps->last();
}

bool is_of_feed_forward(const Node& node) {
  const bool is_feed_forward = node.piece == Piece::Mlp || node.piece == Piece::Shared;
  return node.direction == Direction::W && is_feed_forward && node.part == Part::Fc1;
}

// One layer of one micro-batch.
Node place_of(const Node& node) { return {.layer = node.layer, .micro_batch = node.micro_batch}; }

// Behind the transfer, not only beside it: memory that a weight gradient frees may be given to what
// is issued later, which then waits for it. Those that stand behind it already stay.
NamedEntries cover_projections(NamedEntries entries, const Anatomy& anatomy) {
  std::unordered_map<Node, NamedEntries, NodeHash> held;  // by their layer and micro-batch
  std::unordered_set<Node, NodeHash> begun;
  NamedEntries order;
  for (NamedEntry& entry : entries) {
    const Node node = entry.node;
    if (is_of_feed_forward(node) && !begun.contains(place_of(node))) {
      held[place_of(node)].push_back(std::move(entry));
      continue;
    }
    order.push_back(std::move(entry));
    if (!is_first_for_projection(anatomy, node)) continue;
    begun.insert(place_of(node));
    std::ranges::move(held[place_of(node)], std::back_inserter(order));
  }
  return order;
}

}  // namespace

Graph overlap_tensor_exchange(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  gather_before_products(entries, anatomy);
  return write(cover_projections(std::move(entries), anatomy), anatomy, micro_batches);
}

}  // namespace weft::schedule
