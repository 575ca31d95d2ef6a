// Warm-up and decay of the learning rate in steps. A config may also give them in sequences or as a
// fraction. A sequence is 1 / train.global_batch_size of a step, so results may be fractional.
#pragma once

#include "weft/config/config.h"

namespace weft::config {

double warmup_steps(const Config& config);

// Steps from the first one to the one that reaches optimizer.min_lr.
double decay_steps(const Config& config);

// Decay part of a WSD schedule; 0: none given.
double wsd_steps(const Config& config);

}  // namespace weft::config
