// End of a step: its nodes and their dependencies. Used by the anatomy only.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// End of a training step, in order, for an otherwise complete anatomy; end of a forward-only step.
std::vector<StepNodeAnatomy> training_end(const Anatomy& anatomy, const ReductionScope& sums);
std::vector<StepNodeAnatomy> forward_end(const ReductionScope& sums);

const StepNodeAnatomy& step_node_of(const Anatomy& anatomy, const Node& node);
std::vector<Node> step_node_needs(const Anatomy& anatomy,
                                  const Node& node,
                                  int micro_batches,
                                  StepKind kind);

}  // namespace weft::schedule
