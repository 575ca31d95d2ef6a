#include "weft/schedule/builders/turns.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/builders/orders.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/piece_table.h"

namespace weft::schedule {
namespace {

// Order of a virtual pipeline: for each group of micro-batches, for each chunk, each micro-batch of
// the group. The backward takes the chunks in reverse.
std::vector<Turn> table(const PipelineShape& shape, Direction direction) {
  const int group = shape.vpp == 1 ? shape.micro_batches : shape.group;
  CHECK(group >= 1, "groups of {} micro-batches", group);
  std::vector<Turn> turns;
  for (int first = 0; first < shape.micro_batches; first += group) {
    const int end = std::min(first + group, shape.micro_batches);
    for (int chunk = 0; chunk < shape.vpp; ++chunk) {
      for (int i = first; i < end; ++i) {
        turns.push_back({.direction = direction,
                         .chunk = direction == Direction::F ? chunk : shape.vpp - 1 - chunk,
                         .micro_batch = i});
      }
    }
  }
  return turns;
}

std::vector<std::vector<Turn>> alternating_rounds(const PipelineShape& shape) {
  const std::vector<Turn> forwards = table(shape, Direction::F);
  const std::vector<Turn> backwards = table(shape, Direction::D);
  const auto ahead = static_cast<std::size_t>(warm_up(shape));
  const bool together = shape.vpp > 1 || shape.extra_warm_up > 0;
  std::vector<std::vector<Turn>> rounds;
  for (std::size_t i = 0; i < forwards.size() + ahead; ++i) {
    const bool has_forward = i < forwards.size(), has_backward = i >= ahead;
    if (has_forward) rounds.push_back({forwards[i]});
    if (!has_backward) continue;
    if (has_forward && together) {
      rounds.back().push_back(backwards[i - ahead]);
    } else {
      rounds.push_back({backwards[i - ahead]});
    }
  }
  return rounds;
}

}  // namespace

int warm_up(const PipelineShape& shape) {
  const int after = shape.pp - shape.pp_rank - 1;  // later ranks
  const int forwards = shape.vpp == 1 ? after : 2 * after + (shape.vpp - 1) * shape.group;
  return std::min(forwards + shape.extra_warm_up, shape.micro_batches * shape.vpp);
}

std::vector<std::vector<Turn>> training_rounds(const PipelineShape& shape) {
  switch (shape.order) {
    case TurnOrder::OneForwardOneBackward:
      return alternating_rounds(shape);
    case TurnOrder::ZeroBubble:
      return zero_bubble_rounds(shape);
    case TurnOrder::DualPipeV:
      return dual_pipe_rounds(shape);
  }
  UNREACHABLE("order {} of turns", static_cast<int>(shape.order));
}

std::vector<Turn> training_turns(const PipelineShape& shape) {
  std::vector<Turn> turns;
  for (const std::vector<Turn>& round : training_rounds(shape)) {
    turns.insert(turns.end(), round.begin(), round.end());
  }
  return turns;
}

std::vector<Turn> forward_turns(const PipelineShape& shape) {
  return shape.order == TurnOrder::DualPipeV ? dual_pipe_forwards(shape)
                                             : table(shape, Direction::F);
}

TurnOf::TurnOf(const std::vector<Turn>& turns, const Anatomy& anatomy) : anatomy_(&anatomy) {
  for (const Turn& turn : turns) {
    if (turn.direction == Direction::W) put_off_.emplace(turn.chunk, turn.micro_batch);
  }
  if (anatomy.flow.weight_gradients == WeightGradients::InTurns) make_room(turns);
}

void TurnOf::make_room(const std::vector<Turn>& turns) {
  int held = 0, most = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    const bool waits = put_off_.contains({turn.chunk, turn.micro_batch});
    if (turn.direction == Direction::F) {
      ++held;
    } else if (turn.direction == Direction::W || !waits) {
      --held;
    } else if (i + 1 < turns.size() && turns[i + 1].direction == Direction::W && held >= most) {
      if (held > most) room_.clear();
      most = held;
      const Turn& next = turns[i + 1];
      if (next.chunk == turn.chunk && next.micro_batch != turn.micro_batch) {
        room_[{next.chunk, next.micro_batch}] = turn;
      }
    }
  }
}

std::optional<int> TurnOf::room_for(const Turn& backward) const {
  for (const auto& [of, turn] : room_) {
    if (turn == backward) return of.second;
  }
  return std::nullopt;
}

Turn TurnOf::operator()(const Node& node, int chunk) const {
  Turn turn{.direction = Direction::D, .chunk = chunk, .micro_batch = node.micro_batch};
  if (node.direction == Direction::F) turn.direction = Direction::F;
  const std::pair of(chunk, node.micro_batch);
  const bool waits = may_be_delayed(anatomy_->flow, node) && put_off_.contains(of);
  if (waits) turn.direction = Direction::W;
  if (waits && frees_memory_for_backward(*anatomy_, node) && room_.contains(of))
    return room_.at(of);
  return turn;
}

}  // namespace weft::schedule
