#include "weft/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/base/check.h"
#include "weft/config/learning_steps.h"

namespace weft::optim {
namespace {

double half_cosine(double done) { return 0.5 * (1 + std::cos(std::numbers::pi * done)); }

// Remaining share of the distance from peak to floor after the share `done` of a decay.
double left_of(config::WsdDecay shape, double done) {
  switch (shape) {
    case config::WsdDecay::Exponential:
      return 2 * std::pow(0.5, done) - 1;
    case config::WsdDecay::Linear:
      return 1 - done;
    case config::WsdDecay::Cosine:
      return half_cosine(done);
    case config::WsdDecay::MinusSqrt:
      return 1 - std::sqrt(done);
  }
  UNREACHABLE("shape {}", static_cast<int>(shape));
}

// WSD: stays at the peak until the final decay.
double left_of_stable(const config::Config& config, double step, double end) {
  const double length = config::wsd_steps(config);
  if (length <= 0) return 1;
  const double done = std::clamp((step - (end - length)) / length, 0.0, 1.0);
  return left_of(config.scheduler.lr_wsd_decay_style, done);
}

}  // namespace

double learning_rate(const config::Config& config, std::int64_t step) {
  const double peak = config.optimizer.lr, floor = config.optimizer.min_lr;
  const double warmup = config::warmup_steps(config), at = static_cast<double>(step);
  if (at + 1 <= warmup) {
    const double first = config.scheduler.lr_warmup_init;
    return first + (peak - first) * (at + 1) / warmup;
  }
  const double end = config::decay_steps(config);
  const double done = std::clamp((at - warmup) / std::max(1.0, end - warmup), 0.0, 1.0);
  switch (config.scheduler.lr_decay_style) {
    case config::LrDecay::Constant:
      return peak;
    case config::LrDecay::Linear:
      return peak + (floor - peak) * done;
    case config::LrDecay::Cosine:
      return floor + (peak - floor) * half_cosine(done);
    case config::LrDecay::InverseSquareRoot: {
      if (at > end) return floor;
      const double root = std::sqrt(std::max(1.0, warmup) / std::max(1.0, at));
      return std::max(floor, peak * std::min(1.0, root));
    }
    case config::LrDecay::WarmupStableDecay:
      return floor + (peak - floor) * left_of_stable(config, at, end);
  }
  UNREACHABLE("style {}", static_cast<int>(config.scheduler.lr_decay_style));
}

}  // namespace weft::optim
