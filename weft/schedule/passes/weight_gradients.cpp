#include "weft/schedule/passes/weight_gradients.h"

#include <algorithm>
#include <optional>

#include "weft/base/check.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using IsSplit = std::function<bool(const PieceRow&)>;

bool is_split(const Node& node, const IsSplit& split) {
  return node.direction == Direction::W && split(row_of(node.piece));
}

// Nodes that waited for a weight gradient only as part of a unit wait for its D; of several steps,
// the last.
void uncouple(NamedEntries& entries, const Anatomy& anatomy, const IsSplit& split) {
  for (NamedEntry& entry : entries) {
    const bool adds_up =
        entry.node.direction == Direction::W || entry.node.direction == Direction::None;
    if (adds_up) continue;
    for (Node& wait : entry.waits) {
      if (!is_split(wait, split)) continue;
      wait.direction = Direction::D;
      const PieceAnatomy& piece = piece_of(anatomy, wait);
      if (piece.steps) wait.slice = piece.steps->first;
    }
  }
}

// Entry that a weight gradient follows; nullopt: it stays.
using Behind = std::function<std::optional<std::size_t>(const NamedEntries&, std::size_t)>;

void move_split(NamedEntries& entries, const IsSplit& split, const Behind& behind) {
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (!is_split(entries[i].node, split)) continue;
    if (const std::optional<std::size_t> to = behind(entries, i)) move_behind(entries, i, *to);
  }
}

std::optional<std::size_t> place_behind(const NamedEntries& entries,
                                        std::size_t from,
                                        const Node& node) {
  for (std::size_t i = from + 1; i < entries.size(); ++i) {
    if (entries[i].node == node) return i;
  }
  return std::nullopt;
}

// Next forward combine on the wire, before a backward's experts and within the turn.
std::optional<std::size_t> forward_combine_behind(const NamedEntries& entries, std::size_t from) {
  for (std::size_t i = from + 1; i < entries.size(); ++i) {
    const Node& node = entries[i].node;
    const Place place = row_of(node.piece).place;
    if (node.direction == Direction::F && place == Place::Combine) return i;
    const bool begins_turn = node.direction == Direction::F && node.layer == kNone;
    if (begins_turn || (node.direction == Direction::D && place == Place::Between)) break;
  }
  return std::nullopt;
}

// Backward nodes of a place in a node's layer, ascending.
std::vector<Node> gradients_at(const Anatomy& anatomy, Node node, Place place) {
  node.direction = Direction::D;
  std::vector<Node> found;
  for (const PieceAnatomy& piece : anatomy.layers[static_cast<std::size_t>(node.layer)]) {
    if (row_of(piece.piece).place != place || !piece.has_input_gradient()) continue;
    for (const Node& one : nodes_of(anatomy, piece, node)) found.push_back(one);
  }
  return found;
}

// Transfer that a layer's input gradient starts: the previous layer's combine, or the send to the
// previous stage.
std::optional<Node> set_off_by(const Anatomy& anatomy, const Node& node) {
  const Chunk& chunk = chunk_of_layer(anatomy, node.layer);
  if (node.layer == chunk.first_layer) {
    if (!chunk.receives()) return std::nullopt;
    return Node{.chunk = chunk.stage,
                .direction = Direction::D,
                .micro_batch = node.micro_batch,
                .piece = anatomy.send.piece};
  }
  Node before = node;
  --before.layer;
  const std::vector<Node> combines = gradients_at(anatomy, before, Place::Combine);
  if (combines.empty()) return std::nullopt;
  return combines.back();
}

// Node that a weight gradient waits for, so that it covers the transfer.
std::optional<Node> sets_out_before(const Anatomy& anatomy, const Node& node) {
  switch (row_of(node.piece).cover) {
    case Cover::Unsplit:
    case Cover::Nothing:
      return std::nullopt;
    case Cover::WayBack: {
      Node last = nodes_of(anatomy, piece_of(anatomy, node), node).back();
      if (last == node) return std::nullopt;
      last.direction = Direction::D;
      return last;
    }
    case Cover::LayerBefore:
      return set_off_by(anatomy, node);
  }
  UNREACHABLE("what {} covers", print(node));
}

// Exchange beside the weight gradient of a head or an embedding: the combine that the head's input
// gradient starts, or the forward's combine in flight when the backward has ended.
std::optional<std::size_t> covered_by_end(const Anatomy& anatomy,
                                          const NamedEntries& entries,
                                          std::size_t from) {
  const Node& node = entries[from].node;
  if (!row_of(node.piece).has_input_gradient) return forward_combine_behind(entries, from);
  Node last = node;
  last.chunk = kNone;
  last.layer = chunk_of(anatomy, node).end_layer() - 1;
  const std::vector<Node> combines = gradients_at(anatomy, last, Place::Combine);
  return combines.empty() ? std::nullopt : place_behind(entries, from, combines.back());
}

}  // namespace

Graph delay_weight_gradients(const Graph& graph,
                             const Anatomy& anatomy,
                             int micro_batches,
                             DispatchBeside beside) {
  const IsSplit split = [beside](const PieceRow& row) {
    const bool ends_chunk = row.scope == Scope::ChunkEnd && beside == DispatchBeside::Attention;
    return ends_chunk || row.cover != Cover::Unsplit;
  };
  NamedEntries entries = named_entries(graph);
  uncouple(entries, anatomy, split);
  move_split(entries, split, [&](const NamedEntries& all, std::size_t i) {
    if (row_of(all[i].node.piece).scope == Scope::ChunkEnd) {
      return covered_by_end(anatomy, all, i);
    }
    const std::optional<Node> covered = sets_out_before(anatomy, all[i].node);
    std::optional<std::size_t> to = covered ? place_behind(all, i, *covered) : std::nullopt;
    const bool is_later = row_of(all[i].node.piece).cover == Cover::LayerBefore;
    if (is_later && beside == DispatchBeside::Attention) {
      const std::optional<std::size_t> combine = forward_combine_behind(all, to.value_or(i));
      to = combine ? combine : to;
    }
    return to;
  });
  return write(entries, anatomy, micro_batches);
}

Graph delay_expert_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  const IsSplit split = [](const PieceRow& row) { return row.cover == Cover::WayBack; };
  NamedEntries entries = named_entries(graph);
  uncouple(entries, anatomy, split);
  move_split(entries,
             split,
             [&](const NamedEntries& all, std::size_t i) -> std::optional<std::size_t> {
               const Node& node = all[i].node;
               for (const Node& dispatch : gradients_at(anatomy, node, Place::Dispatch)) {
                 if (dispatch.slice == node.slice) return place_behind(all, i, dispatch);
               }
               return std::nullopt;
             });
  return write(entries, anatomy, micro_batches);
}

Graph defer_head_gradients(const Graph& graph,
                           const Anatomy& anatomy,
                           int micro_batches,
                           int limit) {
  const int first = limit == 0 ? 0 : std::max(0, micro_batches - limit);
  const auto waits = [&](const Node& node) {
    return node.piece == anatomy.head.front().piece && node.direction == Direction::W &&
           node.micro_batch >= first;
  };
  NamedEntries order, deferred, step_end;
  for (NamedEntry& entry : named_entries(graph)) {
    const bool ends = entry.node.direction == Direction::None;
    for (Node& wait : entry.waits) {
      if (!ends && wait.piece == anatomy.head.front().piece && waits(wait))
        wait.direction = Direction::D;
    }
    (waits(entry.node) ? deferred : ends ? step_end : order).push_back(std::move(entry));
  }
  for (NamedEntries* rest : {&deferred, &step_end}) {
    std::ranges::move(*rest, std::back_inserter(order));
  }
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
