// Memory use of a step before its first run. A dry device runs the step twice: with even routing
// and with uneven routing. Differences between the two vary with the data.
#pragma once

#include "weft/train/engine.h"

namespace weft::train {

// Rehearsal of a training step in the order of this plan, for the pool of a rank of such a run.
tensor::Rehearsal rehearse(const rules::JudgedConfig& config,
                           int rank,
                           const schedule::RankPlan& plan);

}  // namespace weft::train
