// Turns of a pipeline rank: warm-up forwards, then one forward and one backward alternately, then
// the remaining backwards.
//
// One rank without pipelining has no warm-up: each micro-batch goes forward and back. One chunk per
// rank: 1F1B. Several chunks: a virtual pipeline, whose chunks take turns. The interleaved order
// (passes/interleave.h) needs one more warm-up forward: the forward and the backward of a turn are
// then of different micro-batches. Zero bubble and DualPipeV (orders.h) delay weight gradients to
// turns of their own.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Schedule: turns.h has the first, orders.h the others.
enum class TurnOrder { OneForwardOneBackward, ZeroBubble, DualPipeV };

struct PipelineShape {
  int pp = 1, pp_rank = 0;
  int vpp = 1;
  int micro_batches = 1;
  int group = 1;          // consecutive micro-batches of a chunk (vpp > 1); at least pp
  int extra_warm_up = 0;  // 1: for the interleaved order
  TurnOrder order = TurnOrder::OneForwardOneBackward;
};

// Forward or backward of one chunk of the rank for one micro-batch.
struct Turn {
  // F: forward. D: backward with its weight gradients, except those in a turn W.
  Direction direction = Direction::F;
  int chunk = 0;  // index within the rank
  int micro_batch = 0;

  auto operator<=>(const Turn&) const = default;
};

// Number of forwards before the first backward in 1F1B.
int warm_up(const PipelineShape& shape);

std::vector<Turn> training_turns(const PipelineShape& shape);

// Turns grouped into rounds, between which batched neighbours exchange. A round is a warm-up
// forward, a forward and a backward, or a final backward. Forward and backward are separate rounds
// unless the pipeline is virtual or turns are interleaved. Two turns of a round may run
// concurrently.
std::vector<std::vector<Turn>> training_rounds(const PipelineShape& shape);

// Turn of a node. A delayed weight gradient's turn depends on the piece, the order and the token
// flow.
class TurnOf {
 public:
  TurnOf(const std::vector<Turn>& turns, const Anatomy& anatomy);
  Turn operator()(const Node& node, int chunk) const;
  // Micro-batch whose weight gradient frees memory for this backward
  // (schedule::frees_memory_for_backward); zero bubble only. nullopt: none.
  std::optional<int> room_for(const Turn& backward) const;

 private:
  using Place = std::pair<int, int>;  // chunk and micro-batch

  void make_room(const std::vector<Turn>& turns);

  const Anatomy* anatomy_;
  std::set<Place> put_off_;
  // By entry of put_off_: backward just before the delayed turn, at the rank's memory peak.
  std::map<Place, Turn> room_;
};

// Evaluation: forwards only.
std::vector<Turn> forward_turns(const PipelineShape& shape);

}  // namespace weft::schedule
