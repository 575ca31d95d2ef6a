// HOW does a step use memory, before it has run? It runs on a device that computes nothing, twice:
// with routers that choose evenly and with ones that do not. What differs, varies with the data.
#pragma once

#include "weft/train/engine.h"

namespace weft::train {

// What a training step in the order of this plan will do, for the pool of a rank of such a run.
tensor::Rehearsal rehearse(const rules::JudgedConfig& config,
                           int rank,
                           const schedule::RankPlan& plan);

}  // namespace weft::train
