// Learning rate of a step: linear warm-up, then decay to min_lr.
#pragma once

#include <cstdint>

#include "weft/config/config.h"

namespace weft::optim {

// `step` counts from 0.
double learning_rate(const config::Config& config, std::int64_t step);

}  // namespace weft::optim
