// Which nodes a step has.
#include "weft/base/casts.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {
namespace {

using base::at;

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

  void add_step(Piece piece, Part part = Part::None) {
    nodes_.push_back({.piece = piece, .part = part});
  }
  std::vector<Node> take() { return std::move(nodes_); }

 private:
  void add(int layer, const PieceAnatomy& piece, int micro_batch) {
    const auto add_nodes = [&](Direction direction) {
      const Node place{.layer = layer, .direction = direction, .micro_batch = micro_batch};
      for (const Node& node : nodes_of(anatomy_, piece, place)) nodes_.push_back(node);
    };
    add_nodes(Direction::F);
    if (pass_ == Pass::ForwardOnly) return;
    if (piece.has_input_gradient) add_nodes(Direction::D);
    if (piece.has_weight_gradient) add_nodes(Direction::W);
  }

  void add_exchange(const Chunk& chunk, int micro_batch) {
    const auto add_exchange_node = [&](Direction direction, Piece piece) {
      nodes_.push_back({.chunk = chunk.stage,
                        .direction = direction,
                        .micro_batch = micro_batch,
                        .piece = piece});
    };
    const auto both = [&](Piece forward, Piece backward) {
      add_exchange_node(Direction::F, forward);
      if (pass_ == Pass::Training) add_exchange_node(Direction::D, backward);
    };
    if (chunk.receives()) both(Piece::Receive, Piece::Send);
    if (chunk.sends()) both(Piece::Send, Piece::Receive);
  }

  const Anatomy& anatomy_;
  const Pass pass_;
  std::vector<Node> nodes_;
};

}  // namespace

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

}  // namespace weft::schedule
