#include "weft/schedule/builders/pipeline.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/builders/writer.h"
#include "weft/schedule/dependencies.h"

namespace weft::schedule {
namespace {

using base::at;

// Writes one turn of one chunk.
class TurnWriter {
 public:
  TurnWriter(GraphWriter& writer, const Anatomy& anatomy, const TurnOf& turn_of, const Turn& turn)
      : writer_(writer),
        anatomy_(anatomy),
        turn_of_(turn_of),
        turn_(turn),
        chunk_(anatomy.chunks[at(turn.chunk)]) {}

  void write() {
    switch (turn_.direction) {
      case Direction::F:
        return forward();
      case Direction::D:
        return backward();
      case Direction::W:
        return weight_gradients();
      case Direction::R:
      case Direction::O:
      case Direction::I:
      case Direction::None:
        break;
    }
    UNREACHABLE("a turn of direction {}", word(turn_.direction));
  }

 private:
  void forward() {
    if (chunk_.receives()) exchange(Direction::F, anatomy_.receive);
    if (chunk_.has_embed) end_forward(anatomy_.embed);
    for (int layer = chunk_.first_layer; layer < chunk_.end_layer(); ++layer) {
      slice_after_slice(anatomy_.layers[at(layer)], [&](const PieceAnatomy& piece, int slice) {
        writer_.add(node(layer, Direction::F, piece, slice), read_before(layer, piece, slice));
      });
    }
    if (chunk_.has_head) end_forward(anatomy_.head);
    if (chunk_.sends()) exchange(Direction::F, anatomy_.send);
  }

  void backward() {
    if (const std::optional<int> other = turn_of_.room_for(turn_)) make_room(*other);
    if (chunk_.sends()) exchange(Direction::D, anatomy_.receive);
    if (chunk_.has_head) end_backward(anatomy_.head);
    for (int layer = chunk_.end_layer(); layer-- > chunk_.first_layer;) {
      slice_after_slice(
          anatomy_.layers[at(layer)] | std::views::reverse,
          [&](const PieceAnatomy& piece, int slice) { gradients(layer, piece, slice); });
    }
    if (chunk_.receives()) exchange(Direction::D, anatomy_.send);
    if (chunk_.has_embed) end_backward(anatomy_.embed);
  }

  // Writes weight gradients of another micro-batch before this one's backward.
  void make_room(int micro_batch) {
    for (int layer = chunk_.first_layer; layer < chunk_.end_layer(); ++layer) {
      for (const PieceAnatomy& piece : anatomy_.layers[at(layer)]) {
        Node weight = node(layer, Direction::W, piece);
        weight.micro_batch = micro_batch;
        if (frees_memory_for_backward(anatomy_, weight)) writer_.add(weight);
      }
    }
  }

  void weight_gradients() {
    for (int layer = chunk_.end_layer(); layer-- > chunk_.first_layer;) {
      slice_after_slice(anatomy_.layers[at(layer)] | std::views::reverse,
                        [&](const PieceAnatomy& piece, int slice) {
                          if (has_weight_gradient_here(layer, piece, slice))
                            writer_.add(weight(layer, piece, slice));
                        });
    }
  }

  bool is_in_this_turn(const Node& node) const { return turn_of_(node, turn_.chunk) == turn_; }

  Node node(int layer, Direction direction, const PieceAnatomy& piece, int slice = kNone) const {
    return {.layer = layer,
            .direction = direction,
            .micro_batch = turn_.micro_batch,
            .piece = piece.piece,
            .part = piece.part,
            .slice = slice};
  }

  // Adds a layer's pieces in the given order; from the first sliced one to the last, slice by
  // slice.
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
    step_after_step(pieces.begin(), first, add);
    for (int slice = 0; slice < anatomy_.flow.slices; ++slice) {
      std::for_each(first, end, [&](const PieceAnatomy& piece) {
        if (is_sliced(piece)) {
          add(piece, slice);
        } else if (slice == 0) {
          add(piece, kNone);
        }
      });
    }
    step_after_step(end, pieces.end(), add);
  }

  // True if the piece runs in steps; weight gradients follow their input gradients.
  bool is_in_steps(const PieceAnatomy& piece) const {
    return piece.runs_in_steps(turn_.direction == Direction::F ? Direction::F : Direction::D);
  }

  // Adds pieces in the given order; a stepwise exchange and the compute beside it step by step,
  // ascending in the forward and descending in the backward.
  template <typename Iterator, typename Add>
  void step_after_step(Iterator piece, Iterator end, const Add& add) const {
    while (piece != end) {
      if (!is_in_steps(*piece)) {
        add(*piece++, kNone);
        continue;
      }
      const auto stop = std::find_if(piece, end, [&](const PieceAnatomy& other) {
        return !is_in_steps(other) || other.steps->exchange != piece->steps->exchange;
      });
      const bool back = turn_.direction != Direction::F;
      int last = 0;
      std::for_each(piece, stop, [&](const PieceAnatomy& of) {
        last = std::max(last, of.steps->last());
      });
      for (int i = 0; i <= last; ++i) {
        const int step = back ? last - i : i;
        std::for_each(piece, stop, [&](const PieceAnatomy& of) {
          if (of.steps->has(step)) add(of, step);
        });
      }
      piece = stop;
    }
  }

  // Ring: readers of the previous step's keys (passes/ring_ahead.h).
  std::vector<Node> read_before(int layer, const PieceAnatomy& piece, int step) const {
    std::vector<Node> readers;
    if (piece.part != Part::Ring) return readers;
    for (const PieceAnatomy& other : anatomy_.layers[at(layer)]) {
      if (other.steps && other.steps->exchange == piece.part && other.part != piece.part) {
        readers.push_back(node(layer, Direction::F, other, step - 1));
      }
    }
    return readers;
  }

  void end_forward(const std::vector<PieceAnatomy>& end) {
    for (const PieceAnatomy& piece : end) writer_.add(node(kNone, Direction::F, piece));
  }
  void end_backward(const std::vector<PieceAnatomy>& end) {
    for (const PieceAnatomy& piece : end | std::views::reverse) gradients(kNone, piece);
  }

  void exchange(Direction direction, const PieceAnatomy& piece) {
    writer_.add({.chunk = chunk_.stage,
                 .direction = direction,
                 .micro_batch = turn_.micro_batch,
                 .piece = piece.piece});
  }

  void gradients(int layer, const PieceAnatomy& piece, int slice = kNone) {
    const Node input = node(layer, Direction::D, piece, slice);
    const bool has_weights = has_weight_gradient_here(layer, piece, slice);
    const PieceName name{piece.piece, piece.part};
    // The weight gradient that stays because of held rows covers their return.
    if (has_weights && delay_holds_rows(anatomy_.flow, name)) {
      writer_.add(input);
      behind_rows_ = weight(layer, piece, slice);
    } else if (gradient_returns_rows(name) && behind_rows_) {
      writer_.add(input);
      writer_.add(*std::exchange(behind_rows_, std::nullopt));
    } else if (piece.has_input_gradient() && has_weights) {
      if (gradient_starts_transfer(layer, piece)) {
        writer_.add(input);
        writer_.add(weight(layer, piece, slice));
      } else {
        writer_.add_unit(input, weight(layer, piece, slice));
      }
    } else if (piece.has_input_gradient()) {
      writer_.add(input);
    } else if (has_weights) {
      writer_.add(weight(layer, piece, slice));
    }
  }

  // Weight gradient of a part; stepwise parts have a single one, after their last input gradient.
  Node weight(int layer, const PieceAnatomy& piece, int slice) const {
    return node(layer, Direction::W, piece, piece.steps ? kNone : slice);
  }
  bool has_weight_gradient_here(int layer, const PieceAnatomy& piece, int slice) const {
    const bool is_last = !is_in_steps(piece) || slice == piece.steps->first;
    return piece.has_weight_gradient() && is_last && is_in_this_turn(weight(layer, piece, slice));
  }

  // True if a part's input gradient starts a transfer at once, which the weight gradient then
  // covers.
  bool gradient_starts_transfer(int layer, const PieceAnatomy& piece) const {
    return std::ranges::any_of(piece.after, [&](const PieceName& before) {
      const Node next{.layer = layer, .piece = before.piece, .part = before.part};
      return before.piece == piece.piece && piece_of(anatomy_, next).lane != piece.lane;
    });
  }

  GraphWriter& writer_;
  const Anatomy& anatomy_;
  const TurnOf& turn_of_;
  std::optional<Node> behind_rows_;
  const Turn turn_;
  const Chunk& chunk_;
};

void add_all(GraphWriter& writer, const std::vector<StepNodeAnatomy>& of_step) {
  for (const StepNodeAnatomy& one : of_step) writer.add(one.node);
}

void check_shape(const Anatomy& anatomy, const PipelineShape& shape) {
  CHECK(anatomy.pipeline.pp == shape.pp && anatomy.pp_rank == shape.pp_rank &&
            anatomy.chunks.size() == at(shape.vpp),
        "the anatomy of pipeline rank {} of {} with {} chunks, and a shape of {} of {} with {}",
        anatomy.pp_rank,
        anatomy.pipeline.pp,
        anatomy.chunks.size(),
        shape.pp_rank,
        shape.pp,
        shape.vpp);
}

}  // namespace

Graph build_training(const Anatomy& anatomy, const PipelineShape& shape) {
  check_shape(anatomy, shape);
  GraphWriter writer(anatomy, shape.micro_batches, StepKind::Training);
  add_all(writer, anatomy.step_start);
  const std::vector<Turn> turns = training_turns(shape);
  const TurnOf turn_of(turns, anatomy);
  for (const Turn& turn : turns) TurnWriter(writer, anatomy, turn_of, turn).write();
  add_all(writer, anatomy.step_end);
  return writer.take();
}

Graph build_forward(const Anatomy& anatomy, const PipelineShape& shape) {
  check_shape(anatomy, shape);
  GraphWriter writer(anatomy, shape.micro_batches, StepKind::ForwardOnly);
  const std::vector<Turn> turns = forward_turns(shape);
  const TurnOf turn_of(turns, anatomy);
  for (const Turn& turn : turns) TurnWriter(writer, anatomy, turn_of, turn).write();
  add_all(writer, anatomy.forward_end);
  return writer.take();
}

}  // namespace weft::schedule
