#include "weft/schedule/anatomy.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/anatomy_bytes.h"

namespace weft::schedule {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Without expert parallelism nothing travels, and these pieces are local.
std::vector<PieceAnatomy> moe_layer(Lane ep) {
  using enum Piece;
  return {
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Route, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true},
      {.piece = Counts, .lane = ep, .after = {Route}, .has_input_gradient = false},
      {.piece = Sizes, .lane = Lane::Host, .after = {Counts}, .has_input_gradient = false},
      {.piece = Permute, .lane = Lane::Compute, .after = {Route}},
      {.piece = Dispatch, .lane = ep, .after = {Permute, Sizes}},
      {.piece = Experts, .lane = Lane::Compute, .after = {Dispatch}, .has_weight_gradient = true},
      {.piece = Combine, .lane = ep, .after = {Experts}},
      {.piece = Merge, .lane = Lane::Compute, .after = {Combine}},
  };
}

std::vector<PieceAnatomy> dense_layer() {
  using enum Piece;
  return {
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Mlp, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true},
  };
}

const PieceAnatomy& piece_of(const Anatomy& anatomy, const Node& node) {
  if (node.piece == Piece::Embed) return anatomy.embed;
  if (node.piece == Piece::Head) return anatomy.head;
  CHECK(node.layer >= 0 && at(node.layer) < anatomy.layers.size(), "no layer for {}", print(node));
  for (const PieceAnatomy& piece : anatomy.layers[at(node.layer)]) {
    if (piece.piece == node.piece) return piece;
  }
  UNREACHABLE("layer {} has no piece for {}", node.layer, print(node));
}

Node beside(const Node& node, Piece piece) {
  Node other = node;
  other.piece = piece;
  return other;
}

Node layer_node(int layer, Direction direction, int micro_batch, Piece piece) {
  return {.layer = layer, .direction = direction, .micro_batch = micro_batch, .piece = piece};
}

// The node that gives layer `layer` its input (forward) or its output gradient (backward).
Node input_of(const Anatomy& anatomy, int layer, int micro_batch) {
  if (layer == 0) return layer_node(kNone, Direction::F, micro_batch, Piece::Embed);
  return layer_node(layer - 1,
                    Direction::F,
                    micro_batch,
                    anatomy.layers[at(layer - 1)].back().piece);
}

Node gradient_of(const Anatomy& anatomy, int layer, int micro_batch) {
  if (at(layer) + 1 == anatomy.layers.size()) {
    return layer_node(kNone, Direction::D, micro_batch, Piece::Head);
  }
  return layer_node(layer + 1,
                    Direction::D,
                    micro_batch,
                    anatomy.layers[at(layer + 1)].front().piece);
}

std::vector<Node> forward_needs(const Anatomy& anatomy, const Node& node) {
  if (node.piece == Piece::Embed) return {};
  if (node.piece == Piece::Head) {
    return {input_of(anatomy, static_cast<int>(anatomy.layers.size()), node.micro_batch)};
  }
  const PieceAnatomy& piece = piece_of(anatomy, node);
  if (piece.after.empty()) return {input_of(anatomy, node.layer, node.micro_batch)};
  std::vector<Node> needs;
  for (const Piece before : piece.after) needs.push_back(beside(node, before));
  return needs;
}

std::vector<Node> input_gradient_needs(const Anatomy& anatomy, const Node& node) {
  Node forward = node;
  forward.direction = Direction::F;
  std::vector<Node> needs{forward};
  if (node.piece == Piece::Head) return needs;
  const auto& pieces = anatomy.layers[at(node.layer)];
  for (const PieceAnatomy& later : pieces) {
    const bool follows = std::ranges::find(later.after, node.piece) != later.after.end();
    if (follows && later.has_input_gradient) needs.push_back(beside(node, later.piece));
  }
  if (node.piece == pieces.back().piece) {
    needs.push_back(gradient_of(anatomy, node.layer, node.micro_batch));
  }
  return needs;
}

// A weight's gradients add in ascending order of micro-batch. The embedding's come from the
// gradient of the first layer's input; where a pass splits W out, it may run any time after its D.
std::vector<Node> weight_gradient_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs;
  if (node.piece == Piece::Embed) {
    needs.push_back(layer_node(0, Direction::D, node.micro_batch, anatomy.layers[0].front().piece));
  } else {
    Node input = node;
    input.direction = Direction::D;
    needs.push_back(input);
  }
  if (node.micro_batch > 0) {
    Node earlier = node;
    --earlier.micro_batch;
    needs.push_back(earlier);
  }
  return needs;
}

Node step_node(Piece piece, Part part) { return {.piece = piece, .part = part}; }

void last_weight_gradients(const Anatomy& anatomy,
                           int micro_batches,
                           Part part,
                           std::vector<Node>& needs) {
  const int last = micro_batches - 1;
  const auto is_expert = [](Piece piece) { return piece == Piece::Experts; };
  for (std::size_t layer = 0; layer < anatomy.layers.size(); ++layer) {
    for (const PieceAnatomy& piece : anatomy.layers[layer]) {
      if (!piece.has_weight_gradient || is_expert(piece.piece) != (part == Part::Expert)) continue;
      needs.push_back(layer_node(static_cast<int>(layer), Direction::W, last, piece.piece));
    }
  }
  if (part == Part::Expert) return;
  if (anatomy.has_tie) {
    needs.push_back(step_node(Piece::Tie, Part::None));
  } else {
    needs.push_back(layer_node(kNone, Direction::W, last, Piece::Embed));
    needs.push_back(layer_node(kNone, Direction::W, last, Piece::Head));
  }
}

std::vector<Node> step_needs(const Anatomy& anatomy,
                             const Node& node,
                             int micro_batches,
                             Pass pass) {
  std::vector<Node> needs;
  switch (node.piece) {
    case Piece::Reduce:
      last_weight_gradients(anatomy, micro_batches, node.part, needs);
      return needs;
    case Piece::Norm:
      for (const Part part : {Part::Dense, Part::Expert}) {
        const bool reduced =
            part == Part::Dense ? anatomy.has_dense_reduction : anatomy.has_expert_reduction;
        if (reduced) {
          needs.push_back(step_node(Piece::Reduce, part));
        } else {
          last_weight_gradients(anatomy, micro_batches, part, needs);
        }
      }
      return needs;
    case Piece::Tie:
      return {layer_node(kNone, Direction::W, micro_batches - 1, Piece::Embed),
              layer_node(kNone, Direction::W, micro_batches - 1, Piece::Head)};
    case Piece::Totals:
      if (pass == Pass::Training) return {step_node(Piece::Norm, Part::None)};
      for (int i = 0; i < micro_batches; ++i) {
        needs.push_back(layer_node(kNone, Direction::F, i, Piece::Head));
      }
      return needs;
    case Piece::Clip:
      return {step_node(anatomy.has_totals ? Piece::Totals : Piece::Norm, Part::None)};
    case Piece::Optimizer:
      return {step_node(Piece::Clip, Part::None)};
    default:
      UNREACHABLE("no rule for {}", print(node));
  }
}

void declare_bytes(const config::ModelConfig& model, PieceAnatomy& piece) {
  piece.kept = kept_bytes(model, piece.piece);
  piece.sent_forward = sent_bytes(model, piece.piece, Direction::F);
  if (piece.has_input_gradient) piece.sent_backward = sent_bytes(model, piece.piece, Direction::D);
}

}  // namespace

Anatomy describe(const config::ModelConfig& model, ReductionScope reductions) {
  Anatomy anatomy;
  const Lane ep = model.expert_model_parallel_size > 1 ? Lane::Ep : Lane::Compute;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    anatomy.layers.push_back(model.is_moe_layer(layer) ? moe_layer(ep) : dense_layer());
  }
  anatomy.embed = {.piece = Piece::Embed,
                   .lane = Lane::Compute,
                   .after = {},
                   .has_input_gradient = false,
                   .has_weight_gradient = true};
  anatomy.head = {.piece = Piece::Head,
                  .lane = Lane::Compute,
                  .after = {},
                  .has_input_gradient = true,
                  .has_weight_gradient = true};
  for (std::vector<PieceAnatomy>& layer : anatomy.layers) {
    for (PieceAnatomy& piece : layer) declare_bytes(model, piece);
  }
  declare_bytes(model, anatomy.embed);
  declare_bytes(model, anatomy.head);
  anatomy.has_tie = model.share_embeddings_and_output_weights;
  anatomy.has_dense_reduction = reductions.dense == Sums::OverRanks;
  anatomy.has_expert_reduction = reductions.expert == Sums::OverRanks;
  anatomy.has_totals = reductions.totals == Sums::OverRanks;
  return anatomy;
}

std::vector<Node> required(const Anatomy& anatomy, const Node& node, int micro_batches, Pass pass) {
  switch (node.direction) {
    case Direction::F:
      return forward_needs(anatomy, node);
    case Direction::D:
      return input_gradient_needs(anatomy, node);
    case Direction::W:
      return weight_gradient_needs(anatomy, node);
    case Direction::R:
      UNREACHABLE("recomputation has no rule yet: {}", print(node));
    case Direction::None:
      return step_needs(anatomy, node, micro_batches, pass);
  }
  UNREACHABLE("direction of {}", print(node));
}

std::vector<Node> all_nodes(const Anatomy& anatomy, int micro_batches, Pass pass) {
  std::vector<Node> nodes;
  const auto add_piece = [&](int layer, const PieceAnatomy& piece, int micro_batch) {
    nodes.push_back(layer_node(layer, Direction::F, micro_batch, piece.piece));
    if (pass == Pass::ForwardOnly) return;
    if (piece.has_input_gradient) {
      nodes.push_back(layer_node(layer, Direction::D, micro_batch, piece.piece));
    }
    if (piece.has_weight_gradient) {
      nodes.push_back(layer_node(layer, Direction::W, micro_batch, piece.piece));
    }
  };
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    add_piece(kNone, anatomy.embed, micro_batch);
    for (std::size_t layer = 0; layer < anatomy.layers.size(); ++layer) {
      for (const PieceAnatomy& piece : anatomy.layers[layer]) {
        add_piece(static_cast<int>(layer), piece, micro_batch);
      }
    }
    add_piece(kNone, anatomy.head, micro_batch);
  }
  if (pass == Pass::ForwardOnly) {
    if (anatomy.has_totals) nodes.push_back(step_node(Piece::Totals, Part::None));
    return nodes;
  }
  if (anatomy.has_tie) nodes.push_back(step_node(Piece::Tie, Part::None));
  if (anatomy.has_dense_reduction) nodes.push_back(step_node(Piece::Reduce, Part::Dense));
  if (anatomy.has_expert_reduction) nodes.push_back(step_node(Piece::Reduce, Part::Expert));
  nodes.push_back(step_node(Piece::Norm, Part::None));
  if (anatomy.has_totals) nodes.push_back(step_node(Piece::Totals, Part::None));
  nodes.push_back(step_node(Piece::Clip, Part::None));
  nodes.push_back(step_node(Piece::Optimizer, Part::None));
  return nodes;
}

Lane lane_of(const Anatomy& anatomy, const Node& node) {
  if (node.direction != Direction::None) return piece_of(anatomy, node).lane;
  switch (node.piece) {
    case Piece::Reduce:
    case Piece::Totals:
      return Lane::Dp;
    case Piece::Tie:
    case Piece::Norm:
    case Piece::Optimizer:
      return Lane::Compute;
    case Piece::Clip:
      return Lane::Host;
    default:
      UNREACHABLE("no lane for {}", print(node));
  }
}

}  // namespace weft::schedule
