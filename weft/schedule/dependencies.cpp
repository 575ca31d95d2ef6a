// What must be over before a node starts: all of it follows from the anatomy.
#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {
namespace {

using base::at;

// The nodes of another piece of the layer that a node has to do with: those of its own slice, or
// of all.
void add_beside(const Anatomy& anatomy,
                const Node& node,
                const PieceAnatomy& other,
                std::vector<Node>& to) {
  for (const Node& found : nodes_of(anatomy, other, node)) {
    const bool apart = node.slice != kNone && found.slice != kNone && node.slice != found.slice;
    if (!apart) to.push_back(found);
  }
}

const PieceAnatomy& named(const Anatomy& anatomy, int layer, const PieceName& name) {
  return piece_of(anatomy, {.layer = layer, .piece = name.piece, .part = name.part});
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

// Whether a layer's routing counts on from the micro-batch before.
bool counts_on(const Anatomy& anatomy, int layer) {
  return std::ranges::any_of(anatomy.layers[at(layer)], [](const PieceAnatomy& piece) {
    return piece.piece == Piece::Balance;
  });
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
  for (const PieceName& before : piece.after) {
    add_beside(anatomy, node, named(anatomy, node.layer, before), needs);
  }
  if (node.piece == Piece::Route && node.micro_batch > 0 && counts_on(anatomy, node.layer)) {
    needs.push_back(layer_node(node.layer, Direction::F, node.micro_batch - 1, Piece::Route));
  }
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
    const bool follows = std::ranges::any_of(later.after, [&](const PieceName& name) {
      return name.piece == node.piece && name.part == node.part;
    });
    if (!follows) continue;
    // What has no gradient has brought something by its forward.
    Node place = node;
    if (!later.has_input_gradient) place.direction = Direction::F;
    add_beside(anatomy, place, later, needs);
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

// A weight's gradients add in ascending order of micro-batch, and of slice within one. The
// embedding's come from the gradient of its chunk's input; where a pass splits W out, it may run
// any time after its D.
std::vector<Node> weight_gradient_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs;
  if (node.piece == Piece::Embed) {
    needs.push_back(input_gradient_of(anatomy, anatomy.chunks.front(), node.micro_batch));
  } else {
    Node input = node;
    input.direction = Direction::D;
    needs.push_back(input);
  }
  Node earlier = node;
  if (node.slice > 0) {
    --earlier.slice;
    needs.push_back(earlier);
  } else if (node.micro_batch > 0) {
    --earlier.micro_batch;
    needs.push_back(nodes_of(anatomy, piece_of(anatomy, node), earlier).back());
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
        const Node place{.layer = layer, .direction = Direction::W, .micro_batch = last};
        needs.push_back(nodes_of(anatomy, piece, place).back());
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
