// Optional statistics of the whole model for the log.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/train/engine.h"

namespace weft::train {

struct ModelStatistics {
  std::optional<double> parameter_norm;        // norm of the weights (logger.log_params_norm)
  std::optional<std::int64_t> gradient_zeros;  // optimizer.log_num_zeros_in_grad
};

// Computes the requested statistics after a step, from its gradients and its new weights.
// Replicated values count once and padding does not count, so the numbers equal those of one rank
// up to rounding. Every rank calls it between steps and gets the same numbers.
ModelStatistics model_statistics(Engine& engine);

}  // namespace weft::train
