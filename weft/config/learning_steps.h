// The steps of warm-up and decay of the learning rate, which a config may also give in sequences or
// as a share. A sequence is 1 / train.global_batch_size of a step, so that neither need be whole.
#pragma once

#include "weft/config/config.h"

namespace weft::config {

double warmup_steps(const Config& config);

// From the first step of the run to the one at which optimizer.min_lr is reached.
double decay_steps(const Config& config);

// The last part of a WSD schedule; 0: none is given.
double wsd_steps(const Config& config);

}  // namespace weft::config
