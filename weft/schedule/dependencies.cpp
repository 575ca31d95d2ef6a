#include "weft/schedule/dependencies.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/piece_nodes.h"
#include "weft/schedule/releases.h"
#include "weft/schedule/step_end.h"

namespace weft::schedule {
namespace {

using base::at;

// Capacity for the required nodes; few nodes require more.
std::vector<Node> usual_room() {
  constexpr std::size_t kUsualNeeds = 8;
  std::vector<Node> nodes;
  nodes.reserve(kUsualNeeds);
  return nodes;
}

// True if two pieces are cut alike: into slices of tokens, or into steps of one exchange.
bool are_cut_alike(const PieceAnatomy& a, const PieceAnatomy& b) {
  if (!a.steps || !b.steps) return !a.steps && !b.steps;
  return a.steps->exchange == b.steps->exchange;
}

// Adds the nodes of another piece of the layer that belong to a node: those of its slice or step,
// or all.
void add_beside(const Anatomy& anatomy,
                const Node& node,
                const PieceAnatomy& other,
                std::vector<Node>& to) {
  const bool is_cut_alike = node.slice != kNone && are_cut_alike(piece_of(anatomy, node), other);
  each_node_of(anatomy, other, node, [&](const Node& found) {
    const bool apart = is_cut_alike && found.slice != kNone && node.slice != found.slice;
    if (!apart) to.push_back(found);
  });
}

const PieceAnatomy& named(const Anatomy& anatomy, int layer, const PieceName& name) {
  return piece_of(anatomy, {.layer = layer, .piece = name.piece, .part = name.part});
}

bool is_end(const Node& node) { return row_of(node.piece).scope == Scope::ChunkEnd; }

Node exchange_of(const PieceAnatomy& piece,
                 const Chunk& chunk,
                 Direction direction,
                 int micro_batch) {
  return {.chunk = chunk.stage,
          .direction = direction,
          .micro_batch = micro_batch,
          .piece = piece.piece};
}

Node output_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch);
Node input_gradient_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch);

// Forward node that makes a chunk's input.
Node input_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.has_embed) return node_of(anatomy.embed.back(), kNone, Direction::F, micro_batch);
  if (chunk.input_stays_on_rank)
    return output_of(anatomy, anatomy.chunks[at(chunk.index - 1)], micro_batch);
  return exchange_of(anatomy.receive, chunk, Direction::F, micro_batch);
}

// Backward node that makes the gradient of a chunk's output.
Node gradient_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.has_head) return node_of(anatomy.head.front(), kNone, Direction::D, micro_batch);
  if (chunk.output_stays_on_rank) {
    return input_gradient_of(anatomy, anatomy.chunks[at(chunk.index + 1)], micro_batch);
  }
  return exchange_of(anatomy.receive, chunk, Direction::D, micro_batch);
}

// Forward node that makes a layer's output, and backward node that makes its input's gradient.
Node layer_output(const Anatomy& anatomy, int layer, int micro_batch) {
  return node_of(anatomy.layers[at(layer)].back(), layer, Direction::F, micro_batch);
}

Node layer_input_gradient(const Anatomy& anatomy, int layer, int micro_batch) {
  return node_of(anatomy.layers[at(layer)].front(), layer, Direction::D, micro_batch);
}

// Output of a chunk.
Node output_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.layers == 0) return input_of(anatomy, chunk, micro_batch);
  return layer_output(anatomy, chunk.end_layer() - 1, micro_batch);
}

Node input_gradient_of(const Anatomy& anatomy, const Chunk& chunk, int micro_batch) {
  if (chunk.layers == 0) return gradient_of(anatomy, chunk, micro_batch);
  return layer_input_gradient(anatomy, chunk.first_layer, micro_batch);
}

// True if a layer's routing continues the counts of the previous micro-batch: if balance follows
// it.
bool continues_counts(const Anatomy& anatomy, const Node& node) {
  return std::ranges::any_of(anatomy.layers[at(node.layer)], [&](const PieceAnatomy& piece) {
    return piece.piece == Piece::Balance && follows(piece, {node.piece, node.part});
  });
}

// True if the piece reads the steps of this ring.
bool reads_ring(const PieceAnatomy& reader, const PieceAnatomy& exchange) {
  return exchange.part == Part::Ring && reader.steps && are_cut_alike(reader, exchange) &&
         follows(reader, {exchange.piece, exchange.part});
}

void add_step(const PieceAnatomy& piece, const Node& place, int step, std::vector<Node>& needs) {
  if (!piece.steps || !piece.steps->has(step)) return;
  Node node = place;
  node.part = piece.part;
  node.slice = step;
  needs.push_back(node);
}

// Order of steps, and the lead of a ring: the output of step i + 2 takes the memory of step i,
// which must have been read.
void add_steps(const Anatomy& anatomy, const Node& node, std::vector<Node>& needs) {
  const PieceAnatomy& piece = piece_of(anatomy, node);
  if (!piece.runs_in_steps(node.direction)) return;
  const bool forward = node.direction == Direction::F;
  add_step(piece, node, node.slice + (forward ? -1 : 1), needs);
  for (const PieceAnatomy& other : anatomy.layers[at(node.layer)]) {
    if (forward && reads_ring(other, piece)) add_step(other, node, node.slice - 2, needs);
    if (!forward && reads_ring(piece, other)) add_step(other, node, node.slice + 2, needs);
  }
}

std::vector<Node> layer_forward_needs(const Anatomy& anatomy, const Node& node) {
  const PieceAnatomy& piece = piece_of(anatomy, node);
  std::vector<Node> needs = usual_room();
  for (const PieceName& before : piece.after) {
    add_beside(anatomy, node, named(anatomy, node.layer, before), needs);
  }
  add_steps(anatomy, node, needs);
  if (node.micro_batch > 0 && continues_counts(anatomy, node)) {
    needs.push_back(node_of(piece, node.layer, Direction::F, node.micro_batch - 1));
  }
  if (!piece.after.empty()) return needs;
  const Chunk& chunk = chunk_of_layer(anatomy, node.layer);
  if (node.layer == chunk.first_layer) return {input_of(anatomy, chunk, node.micro_batch)};
  return {layer_output(anatomy, node.layer - 1, node.micro_batch)};
}

std::vector<Node> forward_needs(const Anatomy& anatomy, const Node& node) {
  if (row_of(node.piece).scope == Scope::Layer) return layer_forward_needs(anatomy, node);
  if (is_end(node) && !piece_of(anatomy, node).after.empty()) {
    std::vector<Node> needs;
    for (const PieceName& before : piece_of(anatomy, node).after) {
      add_beside(anatomy, node, named(anatomy, kNone, before), needs);
    }
    return needs;
  }
  if (node.piece == Piece::Embed || node.piece == anatomy.receive.piece) return {};
  return {output_of(anatomy, chunk_of(anatomy, node), node.micro_batch)};
}

// Adds the gathers of its weights, and the copy that it releases.
std::vector<Node> training_forward_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = forward_needs(anatomy, node);
  if (std::optional<Node> released = released_by(anatomy, node)) {
    released->direction = Direction::O;
    needs.push_back(*released);
  }
  const auto found = anatomy.gathered_for.find({.layer = node.layer, .piece = node.piece});
  if (found != anatomy.gathered_for.end()) {
    needs.insert(needs.end(), found->second.begin(), found->second.end());
  }
  return needs;
}

// Part that a node reads of an earlier piece: of another piece, the shown part.
PieceName read_of(const Node& node, const PieceName& before) {
  const bool is_split = before.part != Part::None;
  const std::optional<Part> shown = row_of(before.piece).shown;
  return before.piece != node.piece && is_split && shown ? PieceName{before.piece, *shown} : before;
}

// True if a node reads an earlier piece's output after recomputation or return from the host. Parts
// of a piece share a state that their gradients read, except parts that travel between
// context-parallel ranks. Of another piece, a node reads the shown part.
bool reads_restored(const Node& node, const PieceAnatomy& before) {
  if (node.direction == Direction::R) return true;
  if (before.piece != node.piece) return row_of(before.piece).shown.has_value();
  if (row_of(node.part).members == Members::Context) return false;
  return node.direction != Direction::D || row_of(before.part).remade == Remade::ForAll;
}

// Adds the nodes that restore a piece's output for a node of the layer.
void add_returns(const Anatomy& anatomy,
                 const Node& node,
                 const PieceAnatomy& piece,
                 std::vector<Node>& needs) {
  Node place = node;
  place.direction = piece.is_offloaded ? Direction::I : Direction::R;
  if (piece.is_recomputed_or_offloaded()) add_beside(anatomy, place, piece, needs);
}

// Adds the restoring nodes of all pieces that a node of the layer reads.
void add_returns_of_others(const Anatomy& anatomy, const Node& node, std::vector<Node>& needs) {
  for (const PieceName& before : piece_of(anatomy, node).after) {
    const PieceName read = read_of(node, before);
    const PieceAnatomy& piece = named(anatomy, node.layer, read);
    if (reads_restored(node, piece)) add_returns(anatomy, node, piece, needs);
  }
}

// Last piece of the previous layer in the chunk, which makes this layer's input; nullptr: the first
// layer.
const PieceAnatomy* maker_of_input(const Anatomy& anatomy, int layer) {
  const bool is_first = layer == chunk_of_layer(anatomy, layer).first_layer;
  return is_first ? nullptr : &anatomy.layers[at(layer - 1)].back();
}

// True if a piece reads the input of its layer: the first piece, and the sum after attention.
bool reads_input(const PieceAnatomy& piece) {
  return piece.after.empty() || piece.is({Piece::Attention, Part::Add});
}

// Adds the nodes that restore a layer's input for its readers: the first piece's gradient, and
// recomputed pieces that read it.
void add_returned_input(const Anatomy& anatomy, const Node& node, std::vector<Node>& needs) {
  if (row_of(node.piece).scope != Scope::Layer) return;
  const PieceAnatomy& piece = piece_of(anatomy, node);
  const bool reads = node.direction == Direction::R ? reads_input(piece) : piece.after.empty();
  const PieceAnatomy* maker = reads ? maker_of_input(anatomy, node.layer) : nullptr;
  if (maker == nullptr || !maker->output_is_recomputed_or_offloaded()) return;
  const Direction direction = maker->is_offloaded ? Direction::I : Direction::R;
  needs.push_back(node_of(*maker, node.layer - 1, direction, node.micro_batch));
}

// Gradients of the pieces that follow a node in its layer, or in its end of the model; the forward
// of followers without gradient.
std::vector<Node> follower_gradients(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = usual_room();
  for (const PieceAnatomy& later : pieces_beside(anatomy, node)) {
    if (!follows(later, {node.piece, node.part})) continue;
    Node place = node;
    place.direction = later.has_input_gradient() ? Direction::D : Direction::F;
    add_beside(anatomy, place, later, needs);
  }
  return needs;
}

std::vector<Node> layer_gradient_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = follower_gradients(anatomy, node);
  add_steps(anatomy, node, needs);
  const std::vector<PieceAnatomy>& pieces = anatomy.layers[at(node.layer)];
  if (!pieces.back().is({node.piece, node.part})) return needs;
  const Chunk& chunk = chunk_of_layer(anatomy, node.layer);
  const int next = node.layer + 1;
  needs.push_back(next == chunk.end_layer()
                      ? gradient_of(anatomy, chunk, node.micro_batch)
                      : layer_input_gradient(anatomy, next, node.micro_batch));
  return needs;
}

// The embedding's last part reads the gradient of its chunk's input.
std::vector<Node> end_gradient_needs(const Anatomy& anatomy, const Node& node) {
  const bool takes = node.piece == Piece::Embed && anatomy.embed.back().part == node.part;
  if (!takes) return follower_gradients(anatomy, node);
  return {input_gradient_of(anatomy, chunk_of(anatomy, node), node.micro_batch)};
}

std::vector<Node> input_gradient_needs(const Anatomy& anatomy, const Node& node) {
  const Chunk& chunk = chunk_of(anatomy, node);
  if (node.piece == anatomy.receive.piece) return {};
  if (node.piece == anatomy.send.piece) {
    return {input_gradient_of(anatomy, chunk, node.micro_batch)};
  }
  std::vector<Node> needs =
      is_end(node) ? end_gradient_needs(anatomy, node) : layer_gradient_needs(anatomy, node);
  add_returns_of_others(anatomy, node, needs);
  add_returned_input(anatomy, node, needs);
  const bool reads_own = row_of(node.part).remade == Remade::ForAll;
  if (reads_own) add_returns(anatomy, node, piece_of(anatomy, node), needs);
  Node forward = node;
  forward.direction = Direction::F;
  add_beside(anatomy, forward, piece_of(anatomy, node), needs);
  return needs;
}

// Needs of a recomputation: kept or restored inputs, after all forward readers.
std::vector<Node> recomputation_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = forward_readers(anatomy, node);
  add_returns_of_others(anatomy, node, needs);
  add_returned_input(anatomy, node, needs);
  return needs;
}

// A copy out needs the forward that made its data; other readers may run concurrently.
std::vector<Node> going_out_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = usual_room();
  Node forward = node;
  forward.direction = Direction::F;
  add_beside(anatomy, forward, piece_of(anatomy, node), needs);
  return needs;
}

// A return needs its copy out, and the release of device memory: all forward readers, and the
// releasing node.
std::vector<Node> coming_in_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = forward_readers(anatomy, node);
  Node place = node;
  // Gathered tokens overwrite the place until the products have read them.
  place.direction = Direction::F;
  for (const PieceAnatomy& later : anatomy.layers[at(node.layer)]) {
    if (follows(later, {node.piece, Part::Gather})) add_beside(anatomy, place, later, needs);
  }
  place.direction = Direction::O;
  needs.push_back(place);
  const PieceAnatomy& piece = piece_of(anatomy, node);
  const PieceName name{piece.piece, piece.part};
  if (const std::optional<int> layer = releasing_layer(anatomy, node.layer, name)) {
    place.layer = *layer;
    place.direction = Direction::F;
    add_beside(anatomy, place, named(anatomy, *layer, name), needs);
  }
  return needs;
}

// Gradients of a weight run in ascending order of micro-batch and slice. The embedding's come from
// the gradient of its chunk's input. A W split out by a pass may run any time after its D.
std::vector<Node> weight_gradient_needs(const Anatomy& anatomy, const Node& node) {
  std::vector<Node> needs = usual_room();
  if (piece_of(anatomy, node).has_input_gradient()) {
    Node input = node;
    input.direction = Direction::D;
    add_beside(anatomy, input, piece_of(anatomy, node), needs);
  } else {
    needs = end_gradient_needs(anatomy, node);
    for (Node& need : needs) need.direction = Direction::D;
  }
  add_returns_of_others(anatomy, node, needs);
  if (begins_gradient(node)) return needs;
  Node earlier = node;
  if (node.slice > 0) {
    --earlier.slice;
    needs.push_back(earlier);
  } else {
    --earlier.micro_batch;
    needs.push_back(nodes_of(anatomy, piece_of(anatomy, node), earlier).back());
  }
  return needs;
}

}  // namespace

bool begins_gradient(const Node& node) {
  return node.direction == Direction::W && node.micro_batch == 0 && node.slice <= 0;
}

bool may_be_delayed(const TokenFlow& flow, const Node& node) {
  return node.direction == Direction::W && row_of(node.piece).cover != Cover::Unsplit &&
         node.part != Part::Norm && !delay_holds_rows(flow, {node.piece, node.part});
}

bool frees_memory_for_backward(const Anatomy& anatomy, const Node& node) {
  if (node.direction != Direction::W || node.piece != Piece::Mlp || node.part != Part::Fc2) {
    return false;
  }
  const auto is_dense = [&](int layer) {
    const std::vector<PieceAnatomy>& pieces = anatomy.layers[at(layer)];
    return std::ranges::find(pieces, Piece::Mlp, &PieceAnatomy::piece) != pieces.end();
  };
  int last = chunk_of(anatomy, node).end_layer() - 1;
  while (!is_dense(last)) --last;
  return node.layer == last;
}

bool delay_holds_rows(const TokenFlow& flow, const PieceName& name) {
  return flow.delay_holds_remote_rows() && name.piece == Piece::Experts && name.part == Part::Fc2;
}

bool gradient_returns_rows(const PieceName& name) {
  return name.piece == Piece::Experts && name.part == Part::Arrange;
}

bool follows(const PieceAnatomy& later, const PieceName& name) {
  return std::ranges::find(later.after, name) != later.after.end();
}

// True if a piece's forward reads the output of an earlier node.
bool reads_forward(const PieceAnatomy& later, const Node& node) {
  if (later.piece == node.piece) return follows(later, {node.piece, node.part});
  const std::optional<Part> shown = row_of(node.piece).shown;
  if (!shown) return false;
  if (node.part != *shown) return follows(later, {node.piece, node.part});
  return std::ranges::any_of(later.after,
                             [&](const PieceName& before) { return before.piece == node.piece; });
}

// True if the piece `later` reads the output of the piece `own`. `made`: a node of `own`.
bool reads_beside(const std::vector<PieceAnatomy>& pieces,
                  const PieceAnatomy& own,
                  const PieceAnatomy& later,
                  const Node& made) {
  // The layer's last piece adds the output to the residual.
  const bool adds = own.output != Bytes{} && &later == &pieces.back();
  return adds || reads_forward(later, made);
}

bool may_read(const Anatomy& anatomy, const Node& forward, const PieceAnatomy& piece, int layer) {
  const PieceAnatomy& reader = piece_of(anatomy, forward);
  if (layer != forward.layer) return reads_input(reader);
  Node made = forward;
  made.piece = piece.piece;
  made.part = piece.part;
  return &reader == &piece || reads_beside(pieces_beside(anatomy, forward), piece, reader, made);
}

std::vector<Node> forward_readers(const Anatomy& anatomy, const Node& node) {
  Node forward = node;
  forward.direction = Direction::F;
  std::vector<Node> readers = usual_room();
  const std::vector<PieceAnatomy>& pieces = pieces_beside(anatomy, node);
  const PieceAnatomy& own = piece_of(anatomy, node);
  add_beside(anatomy, forward, own, readers);
  for (const PieceAnatomy& later : pieces) {
    if (later.is({node.piece, node.part})) continue;
    if (reads_beside(pieces, own, later, node)) add_beside(anatomy, forward, later, readers);
  }
  const bool is_layer_output = own.output_is_recomputed_or_offloaded() && &own == &pieces.back();
  if (!is_layer_output) return readers;
  forward.layer += 1;
  for (const PieceAnatomy& later : anatomy.layers[at(forward.layer)]) {
    if (!reads_input(later)) continue;
    const std::vector<Node> nodes = nodes_of(anatomy, later, forward);
    readers.insert(readers.end(), nodes.begin(), nodes.end());
  }
  return readers;
}

std::vector<Node> required(const Anatomy& anatomy,
                           const Node& node,
                           int micro_batches,
                           StepKind kind) {
  switch (node.direction) {
    case Direction::F:
      return kind == StepKind::Training ? training_forward_needs(anatomy, node)
                                        : forward_needs(anatomy, node);
    case Direction::D:
      return input_gradient_needs(anatomy, node);
    case Direction::W:
      return weight_gradient_needs(anatomy, node);
    case Direction::R:
      return recomputation_needs(anatomy, node);
    case Direction::O:
      return going_out_needs(anatomy, node);
    case Direction::I:
      return coming_in_needs(anatomy, node);
    case Direction::None:
      return step_node_needs(anatomy, node, micro_batches, kind);
  }
  UNREACHABLE("direction of {}", print(node));
}

bool overwrites_memory_of(const Node& node, const Node& need) {
  if (need.piece == Piece::Snapshot) return true;
  switch (node.direction) {
    case Direction::F:
      return need.direction == Direction::O ||
             (node.part == Part::Ring && need.part != Part::Ring && need.slice == node.slice - 2);
    case Direction::D:
      return need.part == Part::Ring && node.part != Part::Ring && need.slice == node.slice + 2;
    case Direction::R:
    case Direction::I:
      return need.direction == Direction::F;
    case Direction::None:
    case Direction::W:
    case Direction::O:
      return false;
  }
  return false;
}

Lane lane_of(const Anatomy& anatomy, const Node& node) {
  const bool forward = node.direction == Direction::F;
  if (node.direction == Direction::O) return Lane::Copy;
  if (node.direction == Direction::I) return Lane::CopyIn;
  switch (row_of(node.piece).scope) {
    case Scope::Layer:
    case Scope::ChunkEnd:
      return piece_of(anatomy, node).lane;
    case Scope::Exchange:
      if (node.piece == anatomy.send.piece)
        return forward ? Lane::PpSendNext : Lane::PpSendPrevious;
      return forward ? Lane::PpReceivePrevious : Lane::PpReceiveNext;
    case Scope::Step:
      return step_node_of(anatomy, node).lane;
  }
  UNREACHABLE("lane of {}", print(node));
}

}  // namespace weft::schedule
