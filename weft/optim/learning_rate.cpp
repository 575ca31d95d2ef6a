#include "weft/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::optim {

double learning_rate(const config::Config& config, std::int64_t step) {
  const double peak = config.optimizer.lr, floor = config.optimizer.min_lr;
  const std::int64_t warmup = config.scheduler.lr_warmup_iters;
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const std::int64_t end = config.scheduler.lr_decay_iters.value_or(config.train.train_iters);
  const double length = static_cast<double>(std::max<std::int64_t>(1, end - warmup));
  const double done = std::clamp(static_cast<double>(step - warmup) / length, 0.0, 1.0);
  switch (config.scheduler.lr_decay_style) {
    case config::LrDecay::Constant:
      return peak;
    case config::LrDecay::Linear:
      return peak + (floor - peak) * done;
    case config::LrDecay::Cosine:
      return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  return peak;
}

}  // namespace weft::optim
