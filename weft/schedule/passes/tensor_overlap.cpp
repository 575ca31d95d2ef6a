#include "weft/schedule/passes/tensor_overlap.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/check.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// True for a step of the input gradient that belongs to a gather's weight gradient, or of its
// sends.
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

// Moves an unsplit send of an input gradient before the following weight gradient. Memory that a
// weight gradient frees may go to a later entry, which would then wait for the weight gradient.
void send_before_weight_gradients(NamedEntries& entries, const Anatomy& anatomy) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Node sent = entries[i].node;
    if (sent.direction != Direction::D || sent.part != Part::Gather || sent.slice != kNone)
      continue;
    if (!piece_of(anatomy, sent).steps) continue;
    std::size_t first = i;
    while (first > 0 && entries[first - 1].node.direction == Direction::W &&
           entries[first - 1].node.piece == sent.piece) {
      --first;
    }
    const auto begin = entries.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(first),
                begin + static_cast<std::ptrdiff_t>(i),
                begin + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// Product whose gradients arrive first and with little cover, by layer and micro-batch.
Node product_of(int layer, int micro_batch, Piece piece) {
  return {.layer = layer, .micro_batch = micro_batch, .piece = piece};
}

// Product whose first gradients the transfer brings.
std::optional<Node> product_begun_by(const Anatomy& anatomy, const Node& node) {
  const bool brings = node.direction == Direction::D && node.part == Part::Scatter;
  if (!brings || node.piece == Piece::Embed || node.piece == Piece::Head) return std::nullopt;
  const PieceAnatomy& piece = piece_of(anatomy, node);
  const bool is_first = !piece.runs_in_steps(Direction::D) || node.slice == piece.steps->last();
  if (!is_first) return std::nullopt;
  return product_of(node.layer, node.micro_batch, node.piece);
}

bool has_dense_feed_forward(const Anatomy& anatomy, int layer) {
  return std::ranges::any_of(anatomy.layers[static_cast<std::size_t>(layer)],
                             [](const PieceAnatomy& piece) { return piece.piece == Piece::Mlp; });
}

// Product whose transfer a weight gradient covers.
std::optional<Node> product_covered_by(const Anatomy& anatomy, const Node& node) {
  if (node.direction != Direction::W) return std::nullopt;
  const bool is_feed_forward = node.piece == Piece::Mlp || node.piece == Piece::Shared;
  const bool follow = anatomy.flow.weight_gradients == WeightGradients::Follow;
  const Part free = follow ? Part::Fc2 : Part::Fc1;
  if (is_feed_forward && node.part == free) {
    return product_of(node.layer, node.micro_batch, Piece::Attention);
  }
  if (node.piece != Piece::Attention || node.part != Part::Proj) return std::nullopt;
  const bool is_first = node.layer == chunk_of_layer(anatomy, node.layer).first_layer;
  if (is_first || !has_dense_feed_forward(anatomy, node.layer - 1)) return std::nullopt;
  return product_of(node.layer - 1, node.micro_batch, Piece::Mlp);
}

// Places weight gradients behind the transfer, not only beside it. Memory that a weight gradient
// frees may go to a later entry, which would then wait for the weight gradient. Entries that are
// behind it already stay.
NamedEntries cover_products(NamedEntries entries, const Anatomy& anatomy) {
  std::unordered_map<Node, NamedEntries, NodeHash> held;  // by product
  std::unordered_set<Node, NodeHash> begun;
  NamedEntries order;
  for (NamedEntry& entry : entries) {
    const Node node = entry.node;
    const std::optional<Node> covered = product_covered_by(anatomy, node);
    if (covered && !begun.contains(*covered)) {
      held[*covered].push_back(std::move(entry));
      continue;
    }
    order.push_back(std::move(entry));
    const std::optional<Node> product = product_begun_by(anatomy, node);
    if (!product) continue;
    begun.insert(*product);
    std::ranges::move(held[*product], std::back_inserter(order));
    held.erase(*product);
  }
  CHECK(held.empty(), "{} weight gradients have no place", held.size());
  return order;
}

bool is_of_attention(const Node& node, Direction direction, Part part) {
  return node.piece == Piece::Attention && node.direction == direction && node.part == part;
}

// Number of entries from `at` on that belong to one micro-batch's embedding, forward or backward.
std::size_t embedding_at(const NamedEntries& entries, std::size_t at, bool is_forward) {
  std::size_t end = at;
  while (end < entries.size() && entries[end].node.piece == Piece::Embed &&
         entries[end].node.micro_batch == entries[at].node.micro_batch &&
         (entries[end].node.direction == Direction::F) == is_forward) {
    ++end;
  }
  return end - at;
}

// Place before the last weight gradient of attention's projection, if a backward ends at `end`:
// after it come attention's core and little work for the tp lane. Otherwise `end`.
std::size_t place_beside_backward(const NamedEntries& entries, std::size_t end) {
  for (std::size_t at = end; at > 0 && entries[at - 1].node.direction != Direction::F; --at) {
    if (std::ranges::find(entries[end].waits, entries[at - 1].node) != entries[end].waits.end()) {
      break;
    }
    if (is_of_attention(entries[at - 1].node, Direction::W, Part::Proj)) return at - 1;
  }
  return end;
}

void embed_beside_backwards(NamedEntries& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t count = embedding_at(entries, i, true);
    if (count == 0) continue;
    const auto at = [&](std::size_t index) {
      return entries.begin() + static_cast<std::ptrdiff_t>(index);
    };
    std::rotate(at(place_beside_backward(entries, i)), at(i), at(i + count));
    i += count - 1;
  }
}

// If a forward follows, the embedding's gradients travel after the forward's first gather, and are
// added after its first core.
void embed_beside_forwards(NamedEntries& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (embedding_at(entries, i, false) != 2) continue;
    std::size_t gather = 0, at = i + 2;
    for (; at < entries.size(); ++at) {
      const Node& node = entries[at].node;
      if (node.direction != Direction::F || is_of_attention(node, Direction::F, Part::Core)) break;
      if (is_of_attention(node, Direction::F, Part::Gather)) gather = at;
    }
    const bool follows = at < entries.size() && entries[at].node.direction == Direction::F;
    if (!follows || gather == 0) continue;
    move_behind(entries, i + 1, at);
    move_behind(entries, i, gather - 1);
  }
}

}  // namespace

Graph overlap_tensor_exchange(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  gather_before_products(entries, anatomy);
  send_before_weight_gradients(entries, anatomy);
  entries = cover_products(std::move(entries), anatomy);
  embed_beside_backwards(entries);
  embed_beside_forwards(entries);
  return write(entries, anatomy, micro_batches);
}

}  // namespace weft::schedule
