#include "weft/schedule/passes/weight_gradients.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using IsSplit = std::function<bool(Piece)>;

bool is_split(const Node& node, const IsSplit& split) {
  return node.direction == Direction::W && split(node.piece);
}

// Whoever waits for a weight gradient only because it was one with its D waits for the D.
void uncouple(std::vector<Step>& steps, const IsSplit& split) {
  for (Step& step : steps) {
    const bool adds_up =
        step.node.direction == Direction::W || step.node.direction == Direction::None;
    if (adds_up) continue;
    for (Node& wait : step.waits) {
      if (is_split(wait, split)) wait.direction = Direction::D;
    }
  }
}

// Moves weight gradients behind the node they cover, where there is one further on.
void move_under(std::vector<Step>& steps,
                const IsSplit& split,
                const std::function<std::optional<Node>(const Node&)>& covered_by) {
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (!is_split(steps[i].node, split)) continue;
    const std::optional<Node> covered = covered_by(steps[i].node);
    if (!covered) continue;
    const auto found = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(i),
                                    steps.end(),
                                    [&](const Step& step) { return step.node == *covered; });
    if (found == steps.end()) continue;
    move_behind(steps, i, static_cast<std::size_t>(found - steps.begin()));
  }
}

// The last node of a piece in its layer and micro-batch: its own, or its last slice's.
Node last_of(const Anatomy& anatomy, const Node& node) {
  return nodes_of(anatomy, piece_of(anatomy, node), node).back();
}

// What a weight gradient waits for, so that it covers what travels: the experts' the input gradient
// of the last slice, whose rows then travel back; attention's and the shared experts' what the
// input gradient of the layer sets off, the combine of the layer before it or the send to the stage
// before.
std::optional<Node> sets_out_before(const Anatomy& anatomy, const Node& node) {
  if (node.piece == Piece::Experts) {
    Node last = last_of(anatomy, node);
    if (last == node) return std::nullopt;
    last.direction = Direction::D;
    return last;
  }
  if (node.piece != Piece::Attention && node.piece != Piece::Shared) return std::nullopt;
  const Chunk& chunk = chunk_of_layer(anatomy, node.layer);
  if (node.layer == chunk.first_layer) {
    if (!chunk.receives()) return std::nullopt;
    return Node{.chunk = chunk.stage,
                .direction = Direction::D,
                .micro_batch = node.micro_batch,
                .piece = Piece::Send};
  }
  const auto& before = anatomy.layers[static_cast<std::size_t>(node.layer - 1)];
  if (before.back().piece != Piece::Merge) return std::nullopt;
  return last_of(anatomy,
                 {.layer = node.layer - 1,
                  .direction = Direction::D,
                  .micro_batch = node.micro_batch,
                  .piece = Piece::Combine});
}

}  // namespace

Graph delay_weight_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  const IsSplit split = [](Piece piece) {
    return piece == Piece::Experts || piece == Piece::Attention || piece == Piece::Shared ||
           piece == Piece::Mlp;
  };
  std::vector<Step> steps = steps_of(graph);
  uncouple(steps, split);
  move_under(steps, split, [&](const Node& node) { return sets_out_before(anatomy, node); });
  return write(steps, anatomy, micro_batches);
}

Graph delay_expert_gradients(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  const IsSplit split = [](Piece piece) { return piece == Piece::Experts; };
  std::vector<Step> steps = steps_of(graph);
  uncouple(steps, split);
  move_under(steps, split, [](const Node& node) {
    Node dispatch = node;
    dispatch.direction = Direction::D;
    dispatch.piece = Piece::Dispatch;
    return std::optional(dispatch);
  });
  return write(steps, anatomy, micro_batches);
}

}  // namespace weft::schedule
