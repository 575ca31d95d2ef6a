// Plain order of a pipeline rank: its turns one after the other, with accumulated gradients; then
// reductions, norm and optimizer. A D and its W are one unit unless the W has a turn of its own.
// Nodes that wait for the D also wait for the W, except exchanges between tensor-parallel ranks,
// which the W covers. Slices of tokens are processed one after the other. A chunk's input is
// received just before its turn, and its output sent just after.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The shape's pipeline rank must be the anatomy's.
Graph build_training(const Anatomy& anatomy, const PipelineShape& shape);

// Evaluation: forwards only.
Graph build_forward(const Anatomy& anatomy, const PipelineShape& shape);

}  // namespace weft::schedule
