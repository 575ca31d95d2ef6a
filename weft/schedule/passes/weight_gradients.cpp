#include "weft/schedule/passes/weight_gradients.h"

#include <algorithm>
#include <optional>

#include "weft/base/check.h"
#include "weft/derive/flops.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using IsSplit = std::function<bool(const PieceRow&)>;

bool is_split(const Node& node, const IsSplit& split) {
  return node.direction == Direction::W && split(row_of(node.piece));
}

// Whoever waits for a weight gradient only because it was one with its D waits for the D, of
// several steps the last.
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

// Moves weight gradients behind the node they cover, where there is one further on.
void move_under(NamedEntries& entries,
                const IsSplit& split,
                const std::function<std::optional<Node>(const Node&)>& covered_by) {
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (!is_split(entries[i].node, split)) continue;
    const std::optional<Node> covered = covered_by(entries[i].node);
    if (!covered) continue;
    const auto found =
        std::find_if(entries.begin() + static_cast<std::ptrdiff_t>(i),
                     entries.end(),
                     [&](const NamedEntry& entry) { return entry.node == *covered; });
    if (found == entries.end()) continue;
    move_behind(entries, i, static_cast<std::size_t>(found - entries.begin()));
  }
}

// The nodes of the pieces of a place in a node's layer, ascending, in the direction of D.
std::vector<Node> gradients_at(const Anatomy& anatomy, Node node, Place place) {
  node.direction = Direction::D;
  std::vector<Node> found;
  for (const PieceAnatomy& piece : anatomy.layers[static_cast<std::size_t>(node.layer)]) {
    if (row_of(piece.piece).place != place || !piece.has_input_gradient()) continue;
    for (const Node& one : nodes_of(anatomy, piece, node)) found.push_back(one);
  }
  return found;
}

// What a layer's input gradient sets off: an exchange of the layer before it, or the send to the
// stage before.
std::optional<Node> set_off_by(const Anatomy& anatomy, const Node& node, const BesideOf& beside) {
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
  const std::vector<Node> exchanges = gradients_at(anatomy, before, beside(before.layer));
  if (exchanges.empty()) return std::nullopt;
  return exchanges.back();
}

// What a weight gradient waits for, so that it covers what travels.
std::optional<Node> sets_out_before(const Anatomy& anatomy,
                                    const Node& node,
                                    const BesideOf& beside) {
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
      return set_off_by(anatomy, node, beside);
  }
  UNREACHABLE("what {} covers", print(node));
}

}  // namespace

Place least_covered(const config::ModelConfig& model, int layer) {
  const std::int64_t described = std::min<std::int64_t>(layer, model.num_layers - 1);
  const derive::LayerFlops forward = derive::layer_forward_flops(model, described);
  return 3 * forward.feed_forward / 2 < forward.attention ? Place::Dispatch : Place::Combine;
}

Graph delay_weight_gradients(const Graph& graph,
                             const Anatomy& anatomy,
                             int micro_batches,
                             const BesideOf& beside) {
  const IsSplit split = [](const PieceRow& row) { return row.cover != Cover::Unsplit; };
  NamedEntries entries = named_entries(graph);
  uncouple(entries, anatomy, split);
  move_under(entries, split, [&](const Node& node) {
    return sets_out_before(anatomy, node, beside);
  });
  return write(entries, anatomy, micro_batches);
}

Graph delay_expert_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  const IsSplit split = [](const PieceRow& row) { return row.cover == Cover::WayBack; };
  NamedEntries entries = named_entries(graph);
  uncouple(entries, anatomy, split);
  move_under(entries, split, [&](const Node& node) -> std::optional<Node> {
    for (const Node& dispatch : gradients_at(anatomy, node, Place::Dispatch)) {
      if (dispatch.slice == node.slice) return dispatch;
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
