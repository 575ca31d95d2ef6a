// The plain order of one pipeline rank: its turns one after the other, gradients accumulating; then
// reductions, norm and optimizer. A D and its W are one unit, but where the W has a turn of its
// own: whatever waits for the D waits for the W too, except an exchange between tensor-parallel
// ranks, which the W covers. Slices of tokens go to their experts and back one after the other. A
// chunk's input is received just before its turn and its output sent just after.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The shape's pipeline rank is the anatomy's.
Graph build_training(const Anatomy& anatomy, const PipelineShape& shape);

// Evaluation: forwards only.
Graph build_forward(const Anatomy& anatomy, const PipelineShape& shape);

}  // namespace weft::schedule
