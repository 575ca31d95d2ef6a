#include "weft/schedule/census.h"

#include "weft/base/casts.h"

namespace weft::schedule {
namespace {

using base::at;

// Collects the nodes of a step.
class Census {
 public:
  Census(const Anatomy& anatomy, StepKind kind) : anatomy_(anatomy), kind_(kind) {}

  void add_micro_batch(int micro_batch) {
    for (const Chunk& chunk : anatomy_.chunks) {
      const auto of_layer = [&](int layer) {
        return Node{.layer = layer, .micro_batch = micro_batch};
      };
      const auto add_end = [&](const std::vector<PieceAnatomy>& end) {
        for (const PieceAnatomy& piece : end) add(piece, of_layer(kNone));
      };
      if (chunk.has_embed) add_end(anatomy_.embed);
      for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
        for (const PieceAnatomy& piece : anatomy_.layers[at(layer)]) add(piece, of_layer(layer));
      }
      if (chunk.has_head) add_end(anatomy_.head);
      add_exchange(chunk, micro_batch);
    }
  }

  void add_all(const std::vector<StepNodeAnatomy>& of_step) {
    for (const StepNodeAnatomy& one : of_step) nodes_.push_back(one.node);
  }
  std::vector<Node> take() { return std::move(nodes_); }

 private:
  void add(const PieceAnatomy& piece, const Node& place) {
    add(piece, place, Direction::F);
    if (kind_ == StepKind::ForwardOnly) return;
    if (piece.is_recomputed) add(piece, place, Direction::R);
    if (piece.is_offloaded) {
      add(piece, place, Direction::O);
      add(piece, place, Direction::I);
    }
    if (piece.has_input_gradient()) add(piece, place, Direction::D);
    if (piece.has_weight_gradient()) add(piece, place, Direction::W);
  }

  void add(const PieceAnatomy& piece, Node place, Direction direction) {
    place.direction = direction;
    for (const Node& node : nodes_of(anatomy_, piece, place)) nodes_.push_back(node);
  }

  void add_exchange(const Chunk& chunk, int micro_batch) {
    const auto both = [&](const PieceAnatomy& forward, const PieceAnatomy& backward) {
      const Node place{.chunk = chunk.stage, .micro_batch = micro_batch};
      add(forward, place, Direction::F);
      if (kind_ == StepKind::Training) add(backward, place, Direction::D);
    };
    if (chunk.receives()) both(anatomy_.receive, anatomy_.send);
    if (chunk.sends()) both(anatomy_.send, anatomy_.receive);
  }

  const Anatomy& anatomy_;
  const StepKind kind_;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<Node> all_nodes(const Anatomy& anatomy, int micro_batches, StepKind kind) {
  Census census(anatomy, kind);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    census.add_micro_batch(micro_batch);
  }
  if (kind == StepKind::Training) {
    census.add_all(anatomy.step_start);
    census.add_all(anatomy.step_end);
  } else {
    census.add_all(anatomy.forward_end);
  }
  return census.take();
}

}  // namespace weft::schedule
