// What must be over before a node starts, and which nodes a step has: all of it follows from the
// anatomy.
#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

Node stage_node(const Chunk& chunk, Direction direction, int micro_batch, Piece piece) {
  return {.chunk = chunk.stage, .direction = direction, .micro_batch = micro_batch, .piece = piece};
}

// The forward node that gives a chunk its input.
Node input_of(const Chunk& chunk, int micro_batch) {
  return chunk.has_embed ? layer_node(kNone, Direction::F, micro_batch, Piece::Embed)
                         : stage_node(chunk, Direction::F, micro_batch, Piece::Receive);
}

// The backward node that gives it the gradient of its output.
Node gradient_of(const Chunk& chunk, int micro_batch) {
  return chunk.has_head ? layer_node(kNone, Direction::D, micro_batch, Piece::Head)
                        : stage_node(chunk, Direction::D, micro_batch, Piece::Receive);
}

// The forward node whose output is the chunk's, and the backward one whose is its input's gradient.
Node output_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.layers == 0) return input_of(chunk, micro_batch);
  const int last = chunk.end_layer() - 1;
  return layer_node(last, Direction::F, micro_batch, anatomy.layers[at(last)].back().piece);
}

Node input_gradient_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.layers == 0) return gradient_of(chunk, micro_batch);
  const int first = chunk.first_layer;
  return layer_node(first, Direction::D, micro_batch, anatomy.layers[at(first)].front().piece);
}

std::vector<Node> forward_needs(const Anatomy& anatomy, const Node& node) {
  switch (node.piece) {
    case Piece::Embed:
    case Piece::Receive:
      return {};
    case Piece::Head:
    case Piece::Send:
      return {output_of(anatomy, chunk_of(anatomy, node), node.micro_batch)};
    default:
      break;
  }
  const PieceAnatomy& piece = piece_of(anatomy, node);
  std::vector<Node> needs;
  for (const Piece before : piece.after) needs.push_back(beside(node, before));
  if (!piece.after.empty()) return needs;
  const Chunk& chunk = chunk_of_layer(anatomy, node.layer);
  if (node.layer == chunk.first_layer) return {input_of(chunk, node.micro_batch)};
  const int before = node.layer - 1;
  return {
      layer_node(before, Direction::F, node.micro_batch, anatomy.layers[at(before)].back().piece)};
}

std::vector<Node> input_gradient_needs(const Anatomy& anatomy, const Node& node) {
  const Chunk& chunk = chunk_of(anatomy, node);
  if (node.piece == Piece::Receive) return {};
  if (node.piece == Piece::Send) return {input_gradient_of(anatomy, chunk, node.micro_batch)};
  Node forward = node;
  forward.direction = Direction::F;
  std::vector<Node> needs{forward};
  if (node.piece == Piece::Head) return needs;
  const auto& pieces = anatomy.layers[at(node.layer)];
  for (const PieceAnatomy& later : pieces) {
    const bool follows = std::ranges::find(later.after, node.piece) != later.after.end();
    if (follows && later.has_input_gradient) needs.push_back(beside(node, later.piece));
  }
  if (node.piece != pieces.back().piece) return needs;
  const int next = node.layer + 1;
  needs.push_back(next == chunk.end_layer() ? gradient_of(chunk, node.micro_batch)
                                            : layer_node(next,
                                                         Direction::D,
                                                         node.micro_batch,
                                                         anatomy.layers[at(next)].front().piece));
  return needs;
}

// A weight's gradients add in ascending order of micro-batch. The embedding's come from the
// gradient of its chunk's input; where a pass splits W out, it may run any time after its D.
std::vector<Node> weight_gradient_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs;
  if (node.piece == Piece::Embed) {
    needs.push_back(input_gradient_of(anatomy, anatomy.chunks.front(), node.micro_batch));
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

// The ends of the tables' weight gradients that this rank has.
void table_gradients(const Anatomy& anatomy, int last, std::vector<Node>& needs) {
  if (anatomy.chunks.front().has_embed) {
    needs.push_back(layer_node(kNone, Direction::W, last, Piece::Embed));
  }
  if (anatomy.chunks.back().has_head) {
    needs.push_back(layer_node(kNone, Direction::W, last, Piece::Head));
  }
}

void last_weight_gradients(const Anatomy& anatomy,
                           int micro_batches,
                           Part part,
                           std::vector<Node>& needs) {
  const int last = micro_batches - 1;
  const auto is_expert = [](Piece piece) { return piece == Piece::Experts; };
  for (const Chunk& chunk : anatomy.chunks) {
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      for (const PieceAnatomy& piece : anatomy.layers[at(layer)]) {
        if (!piece.has_weight_gradient || is_expert(piece.piece) != (part == Part::Expert)) {
          continue;
        }
        needs.push_back(layer_node(layer, Direction::W, last, piece.piece));
      }
    }
  }
  if (part == Part::Expert) return;
  table_gradients(anatomy, last, needs);
  if (anatomy.tie != Tie::None) needs.push_back(step_node(Piece::Tie, Part::None));
}

// A forward pass ends when every micro-batch has left the rank.
std::vector<Node> forward_ends(const Anatomy& anatomy, int micro_batches) {
  std::vector<Node> ends;
  const Chunk& last = anatomy.chunks.back();
  for (int i = 0; i < micro_batches; ++i) {
    ends.push_back(last.has_head ? layer_node(kNone, Direction::F, i, Piece::Head)
                                 : stage_node(last, Direction::F, i, Piece::Send));
  }
  return ends;
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
      table_gradients(anatomy, micro_batches - 1, needs);
      return needs;
    case Piece::Totals:
      if (pass == Pass::Training) return {step_node(Piece::Norm, Part::None)};
      return forward_ends(anatomy, micro_batches);
    case Piece::Clip:
      return {step_node(anatomy.has_totals ? Piece::Totals : Piece::Norm, Part::None)};
    case Piece::Optimizer:
      return {step_node(Piece::Clip, Part::None)};
    default:
      UNREACHABLE("no rule for {}", print(node));
  }
}

// Collects the nodes of a step.
class Census {
 public:
  Census(const Anatomy& anatomy, Pass pass) : anatomy_(anatomy), pass_(pass) {}

  void add_micro_batch(int micro_batch) {
    for (const Chunk& chunk : anatomy_.chunks) {
      if (chunk.has_embed) add(kNone, anatomy_.embed, micro_batch);
      for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
        for (const PieceAnatomy& piece : anatomy_.layers[at(layer)]) add(layer, piece, micro_batch);
      }
      if (chunk.has_head) add(kNone, anatomy_.head, micro_batch);
      add_exchange(chunk, micro_batch);
    }
  }

  void add_step(Piece piece, Part part = Part::None) { nodes_.push_back(step_node(piece, part)); }
  std::vector<Node> take() { return std::move(nodes_); }

 private:
  void add(int layer, const PieceAnatomy& piece, int micro_batch) {
    nodes_.push_back(layer_node(layer, Direction::F, micro_batch, piece.piece));
    if (pass_ == Pass::ForwardOnly) return;
    if (piece.has_input_gradient) {
      nodes_.push_back(layer_node(layer, Direction::D, micro_batch, piece.piece));
    }
    if (piece.has_weight_gradient) {
      nodes_.push_back(layer_node(layer, Direction::W, micro_batch, piece.piece));
    }
  }

  void add_exchange(const Chunk& chunk, int micro_batch) {
    const auto both = [&](Piece forward, Piece backward) {
      nodes_.push_back(stage_node(chunk, Direction::F, micro_batch, forward));
      if (pass_ == Pass::Training) {
        nodes_.push_back(stage_node(chunk, Direction::D, micro_batch, backward));
      }
    };
    if (chunk.receives()) both(Piece::Receive, Piece::Send);
    if (chunk.sends()) both(Piece::Send, Piece::Receive);
  }

  const Anatomy& anatomy_;
  const Pass pass_;
  std::vector<Node> nodes_;
};

}  // namespace

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
  Census census(anatomy, pass);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    census.add_micro_batch(micro_batch);
  }
  if (pass == Pass::ForwardOnly) {
    if (anatomy.has_totals) census.add_step(Piece::Totals);
    return census.take();
  }
  if (anatomy.tie != Tie::None) census.add_step(Piece::Tie);
  if (anatomy.has_dense_reduction) census.add_step(Piece::Reduce, Part::Dense);
  if (anatomy.has_expert_reduction) census.add_step(Piece::Reduce, Part::Expert);
  census.add_step(Piece::Norm);
  if (anatomy.has_totals) census.add_step(Piece::Totals);
  census.add_step(Piece::Clip);
  census.add_step(Piece::Optimizer);
  return census.take();
}

Lane lane_of(const Anatomy& anatomy, const Node& node) {
  switch (node.piece) {
    case Piece::Send:
      return node.direction == Direction::F ? Lane::PpSendNext : Lane::PpSendPrevious;
    case Piece::Receive:
      return node.direction == Direction::F ? Lane::PpReceivePrevious : Lane::PpReceiveNext;
    case Piece::Reduce:
    case Piece::Totals:
      return Lane::Dp;
    case Piece::Tie:
      return anatomy.tie == Tie::BetweenStages ? Lane::Dp : Lane::Compute;
    case Piece::Norm:
    case Piece::Optimizer:
      return Lane::Compute;
    case Piece::Clip:
      return Lane::Host;
    default:
      return piece_of(anatomy, node).lane;
  }
}

}  // namespace weft::schedule
