#include "weft/schedule/builders/accumulation.h"

#include <ranges>

#include "weft/schedule/builders/writer.h"

namespace weft::schedule {
namespace {

void add_forward(GraphWriter& writer, const Anatomy& anatomy, int micro_batch) {
  const auto add = [&](int layer, Piece piece) {
    writer.add(
        {.layer = layer, .direction = Direction::F, .micro_batch = micro_batch, .piece = piece});
  };
  add(kNone, Piece::Embed);
  for (std::size_t layer = 0; layer < anatomy.layers.size(); ++layer) {
    for (const PieceAnatomy& piece : anatomy.layers[layer])
      add(static_cast<int>(layer), piece.piece);
  }
  add(kNone, Piece::Head);
}

void add_backward_piece(GraphWriter& writer,
                        const PieceAnatomy& piece,
                        int layer,
                        int micro_batch) {
  const Node input{.layer = layer,
                   .direction = Direction::D,
                   .micro_batch = micro_batch,
                   .piece = piece.piece};
  Node weight = input;
  weight.direction = Direction::W;
  if (piece.has_input_gradient && piece.has_weight_gradient) {
    writer.add_unit(input, weight);
  } else if (piece.has_input_gradient) {
    writer.add(input);
  } else if (piece.has_weight_gradient) {
    writer.add(weight);
  }
}

void add_backward(GraphWriter& writer, const Anatomy& anatomy, int micro_batch) {
  add_backward_piece(writer, anatomy.head, kNone, micro_batch);
  for (std::size_t layer = anatomy.layers.size(); layer-- > 0;) {
    for (const PieceAnatomy& piece : anatomy.layers[layer] | std::views::reverse) {
      add_backward_piece(writer, piece, static_cast<int>(layer), micro_batch);
    }
  }
  add_backward_piece(writer, anatomy.embed, kNone, micro_batch);
}

void add_step_end(GraphWriter& writer, const Anatomy& anatomy) {
  const auto add = [&](Piece piece, Part part) { writer.add({.piece = piece, .part = part}); };
  if (anatomy.has_tie) add(Piece::Tie, Part::None);
  if (anatomy.has_expert_reduction) add(Piece::Reduce, Part::Expert);
  if (anatomy.has_dense_reduction) add(Piece::Reduce, Part::Dense);
  add(Piece::Norm, Part::None);
  if (anatomy.has_totals) add(Piece::Totals, Part::None);
  add(Piece::Clip, Part::None);
  add(Piece::Optimizer, Part::None);
}

}  // namespace

Graph build_accumulation(const Anatomy& anatomy, int micro_batches) {
  GraphWriter writer(anatomy, micro_batches, Pass::Training);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    add_forward(writer, anatomy, micro_batch);
    add_backward(writer, anatomy, micro_batch);
  }
  add_step_end(writer, anatomy);
  return writer.take();
}

Graph build_forward(const Anatomy& anatomy, int micro_batches) {
  GraphWriter writer(anatomy, micro_batches, Pass::ForwardOnly);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    add_forward(writer, anatomy, micro_batch);
  }
  if (anatomy.has_totals) writer.add({.piece = Piece::Totals});
  return writer.take();
}

}  // namespace weft::schedule
