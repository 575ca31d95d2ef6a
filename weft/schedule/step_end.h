// The end of a step: which nodes it has, and what they need. Seen by the anatomy alone.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Of a training step, in order, of an anatomy that has all the rest; of a forward-only step.
std::vector<StepNodeAnatomy> training_end(const Anatomy& anatomy, const ReductionScope& sums);
std::vector<StepNodeAnatomy> forward_end(const ReductionScope& sums);

const StepNodeAnatomy& step_node_of(const Anatomy& anatomy, const Node& node);
std::vector<Node> step_node_needs(const Anatomy& anatomy,
                                  const Node& node,
                                  int micro_batches,
                                  StepKind kind);

}  // namespace weft::schedule
