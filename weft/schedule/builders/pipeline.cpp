#include "weft/schedule/builders/pipeline.h"

#include <algorithm>
#include <ranges>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/builders/writer.h"

namespace weft::schedule {
namespace {

using base::at;

// Writes one turn of one chunk.
class TurnWriter {
 public:
  TurnWriter(GraphWriter& writer, const Anatomy& anatomy, const Turn& turn)
      : writer_(writer),
        anatomy_(anatomy),
        chunk_(anatomy.chunks[at(turn.chunk)]),
        micro_batch_(turn.micro_batch) {}

  void forward() {
    if (chunk_.receives()) exchange(Direction::F, anatomy_.receive);
    if (chunk_.has_embed) writer_.add(node(kNone, Direction::F, anatomy_.embed));
    for (int layer = chunk_.first_layer; layer < chunk_.end_layer(); ++layer) {
      slice_after_slice(anatomy_.layers[at(layer)], [&](const PieceAnatomy& piece, int slice) {
        writer_.add(node(layer, Direction::F, piece, slice));
      });
    }
    if (chunk_.has_head) writer_.add(node(kNone, Direction::F, anatomy_.head));
    if (chunk_.sends()) exchange(Direction::F, anatomy_.send);
  }

  void backward() {
    if (chunk_.sends()) exchange(Direction::D, anatomy_.receive);
    if (chunk_.has_head) gradients(kNone, anatomy_.head);
    for (int layer = chunk_.end_layer(); layer-- > chunk_.first_layer;) {
      slice_after_slice(
          anatomy_.layers[at(layer)] | std::views::reverse,
          [&](const PieceAnatomy& piece, int slice) { gradients(layer, piece, slice); });
    }
    if (chunk_.receives()) exchange(Direction::D, anatomy_.send);
    if (chunk_.has_embed) gradients(kNone, anatomy_.embed);
  }

 private:
  Node node(int layer, Direction direction, const PieceAnatomy& piece, int slice = kNone) const {
    return {.layer = layer,
            .direction = direction,
            .micro_batch = micro_batch_,
            .piece = piece.piece,
            .part = piece.part,
            .slice = slice};
  }

  // A layer's pieces in the order given: from the first sliced one to the last, slice by slice.
  template <typename Pieces, typename Add>
  void slice_after_slice(const Pieces& pieces, const Add& add) const {
    const auto is_sliced = [&](const PieceAnatomy& piece) {
      return slices_of(anatomy_, piece) > 1;
    };
    const auto first = std::ranges::find_if(pieces, is_sliced);
    auto end = first;
    for (auto piece = first; piece != pieces.end(); ++piece) {
      if (is_sliced(*piece)) end = std::next(piece);
    }
    std::for_each(pieces.begin(), first, [&](const PieceAnatomy& piece) { add(piece, kNone); });
    for (int slice = 0; slice < anatomy_.flow.slices; ++slice) {
      std::for_each(first, end, [&](const PieceAnatomy& piece) {
        if (is_sliced(piece)) {
          add(piece, slice);
        } else if (slice == 0) {
          add(piece, kNone);
        }
      });
    }
    std::for_each(end, pieces.end(), [&](const PieceAnatomy& piece) { add(piece, kNone); });
  }

  void exchange(Direction direction, const PieceAnatomy& piece) {
    writer_.add({.chunk = chunk_.stage,
                 .direction = direction,
                 .micro_batch = micro_batch_,
                 .piece = piece.piece});
  }

  void gradients(int layer, const PieceAnatomy& piece, int slice = kNone) {
    const Node input = node(layer, Direction::D, piece, slice);
    const Node weight = node(layer, Direction::W, piece, slice);
    if (piece.has_input_gradient() && piece.has_weight_gradient()) {
      if (sets_off_exchange(layer, piece)) {
        writer_.add(input);
        writer_.add(weight);
      } else {
        writer_.add_unit(input, weight);
      }
    } else if (piece.has_input_gradient()) {
      writer_.add(input);
    } else if (piece.has_weight_gradient()) {
      writer_.add(weight);
    }
  }

  // Whether the input gradient of a part travels on at once: then the weight gradient covers that.
  bool sets_off_exchange(int layer, const PieceAnatomy& piece) const {
    if (layer == kNone) return false;
    return std::ranges::any_of(piece.after, [&](const PieceName& before) {
      const PieceAnatomy& next =
          piece_of(anatomy_, {.layer = layer, .piece = before.piece, .part = before.part});
      return before.piece == piece.piece && next.lane != piece.lane;
    });
  }

  GraphWriter& writer_;
  const Anatomy& anatomy_;
  const Chunk& chunk_;
  const int micro_batch_;
};

void add_all(GraphWriter& writer, const std::vector<StepEndAnatomy>& ends) {
  for (const StepEndAnatomy& end : ends) writer.add({.piece = end.piece, .part = end.part});
}

void check_shape(const Anatomy& anatomy, const PipelineShape& shape) {
  CHECK(anatomy.pp == shape.pp && anatomy.pp_rank == shape.pp_rank &&
            anatomy.chunks.size() == at(shape.vpp),
        "the anatomy of pipeline rank {} of {} with {} chunks, and a shape of {} of {} with {}",
        anatomy.pp_rank,
        anatomy.pp,
        anatomy.chunks.size(),
        shape.pp_rank,
        shape.pp,
        shape.vpp);
}

}  // namespace

Graph build_training(const Anatomy& anatomy, const PipelineShape& shape) {
  check_shape(anatomy, shape);
  GraphWriter writer(anatomy, shape.micro_batches, StepKind::Training);
  for (const Turn& turn : training_turns(shape)) {
    TurnWriter turn_writer(writer, anatomy, turn);
    turn.direction == Direction::F ? turn_writer.forward() : turn_writer.backward();
  }
  add_all(writer, anatomy.step_end);
  return writer.take();
}

Graph build_forward(const Anatomy& anatomy, const PipelineShape& shape) {
  check_shape(anatomy, shape);
  GraphWriter writer(anatomy, shape.micro_batches, StepKind::ForwardOnly);
  for (const Turn& turn : forward_turns(shape)) TurnWriter(writer, anatomy, turn).forward();
  add_all(writer, anatomy.forward_end);
  return writer.take();
}

}  // namespace weft::schedule
