// The end of a step: which nodes it has, and what they need. Seen by the anatomy alone.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Of a training step, in order; of a forward-only step.
std::vector<StepEndAnatomy> training_end(Tie tie, const ReductionScope& sums);
std::vector<StepEndAnatomy> forward_end(const ReductionScope& sums);

const StepEndAnatomy& step_end_of(const Anatomy& anatomy, const Node& node);
std::vector<Node> step_end_needs(const Anatomy& anatomy,
                                 const Node& node,
                                 int micro_batches,
                                 StepKind kind);

}  // namespace weft::schedule
