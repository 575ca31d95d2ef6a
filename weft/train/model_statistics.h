// Numbers of the whole model that a log shows where it is asked for them.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/train/engine.h"

namespace weft::train {

struct ModelStatistics {
  std::optional<double> parameter_norm;        // of the weights (logger.log_params_norm)
  std::optional<std::int64_t> gradient_zeros;  // optimizer.log_num_zeros_in_grad
};

// What the config asks for, after a step: its gradients, and the weights that it left. What several
// ranks hold counts once, and padding not at all, so that the numbers are those of one rank, to
// rounding. Every rank calls it, while no step is under way, and gets the same.
ModelStatistics model_statistics(Engine& engine);

}  // namespace weft::train
