// The order of a pipeline rank's work, micro-batch by micro-batch: warm-up forwards, then one
// forward and one backward in turn, then the backwards that are left.
//
// One rank without pipelining is the shortest of them: no warm-up, each micro-batch forward and
// back. One chunk a rank is 1F1B; more are a virtual pipeline, whose chunks take turns. The
// interleaved order (passes/interleave.h) wants one forward more in the warm-up, so that the
// forward and the backward of a turn are of different micro-batches. Zero bubble and DualPipeV
// (orders.h) put weight gradients off: those have turns of their own.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Whose turns: see turns.h for the first, orders.h for the others.
enum class TurnOrder { OneForwardOneBackward, ZeroBubble, DualPipeV };

struct PipelineShape {
  int pp = 1, pp_rank = 0;
  int vpp = 1;
  int micro_batches = 1;
  int group = 1;          // micro-batches a chunk takes in a row (vpp > 1); pp at least
  int extra_warm_up = 0;  // 1 for the interleaved order
  TurnOrder order = TurnOrder::OneForwardOneBackward;
};

// The forward or the backward of one chunk of the rank for one micro-batch.
struct Turn {
  // F; D for the backward with its weight gradients, but for those that have a turn of their own; W
  // for these.
  Direction direction = Direction::F;
  int chunk = 0;  // of the rank, from 0
  int micro_batch = 0;

  auto operator<=>(const Turn&) const = default;
};

// Forwards before the first backward, of one forward and one backward in turn.
int warm_up(const PipelineShape& shape);

std::vector<Turn> training_turns(const PipelineShape& shape);

// The same by rounds, between which batched neighbours exchange: a warm-up forward, a forward and a
// backward in a virtual pipeline or where turns are interleaved (else each alone), a backward of
// the end. Two turns of one round may run side by side.
std::vector<std::vector<Turn>> training_rounds(const PipelineShape& shape);

// The turn of a node among those of a rank: whose weight gradients wait is a matter of the piece,
// of the order and of how tokens travel.
class TurnOf {
 public:
  TurnOf(const std::vector<Turn>& turns, const Anatomy& anatomy);
  Turn operator()(const Node& node, int chunk) const;
  // The micro-batch of which a weight gradient makes room for a backward (schedule::makes_room):
  // of zero bubble alone.
  std::optional<int> room_for(const Turn& backward) const;

 private:
  using Place = std::pair<int, int>;  // chunk and micro-batch

  void make_room(const std::vector<Turn>& turns);

  const Anatomy* anatomy_;
  std::set<Place> put_off_;
  // Of these: the backward just before their turn, where the rank holds most.
  std::map<Place, Turn> room_;
};

// Evaluation: forwards only.
std::vector<Turn> forward_turns(const PipelineShape& shape);

}  // namespace weft::schedule
