#include "weft/plan/hardware/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/base/casts.h"

namespace weft::plan {
namespace {

using base::number;

constexpr double kSteps = 32;

void make_mean_one(std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (sum <= 0) {
    std::ranges::fill(loads, 1.0);
    return;
  }
  for (double& load : loads) load *= number(std::ssize(loads)) / sum;
}

ExpertQuantiles mean_of(const std::map<int, ExpertQuantiles>& layers) {
  ExpertQuantiles mean{.p50 = 0, .p95 = 0, .max = 0};
  const double n = static_cast<double>(layers.size());
  for (const auto& [layer, each] : layers) {
    mean.p50 += each.p50 / n;
    mean.p95 += each.p95 / n;
    mean.max += each.max / n;
  }
  return mean;
}

double between(double from, double to, double share) { return from + (to - from) * share; }

}  // namespace

std::vector<double> skewed_loads(double skew, std::int64_t experts) {
  std::vector<double> loads;
  for (std::int64_t i = 1; i <= experts; ++i) loads.push_back(std::pow(number(i), -skew));
  make_mean_one(loads);
  return loads;
}

// Linear interpolation between the quantiles; the smallest load follows from the mean.
std::vector<double> measured_loads(const ExpertQuantiles& quantiles, std::int64_t experts) {
  const double p50 = quantiles.p50, p95 = std::max(p50, quantiles.p95);
  const double max = std::max(p95, quantiles.max);
  // The quantile function has mean 1.
  const double upper = 0.45 * (p50 + p95) / 2 + 0.05 * (p95 + max) / 2;
  const double least = std::clamp((1 - upper) / 0.25 - p50, 0.0, p50);
  std::vector<double> loads;
  for (std::int64_t i = 0; i < experts; ++i) {
    const double place = experts == 1 ? 0.5 : 1 - number(i) / number(experts - 1);
    if (place >= 0.95) {
      loads.push_back(between(p95, max, (place - 0.95) / 0.05));
    } else if (place >= 0.5) {
      loads.push_back(between(p50, p95, (place - 0.5) / 0.45));
    } else {
      loads.push_back(between(least, p50, place / 0.5));
    }
  }
  make_mean_one(loads);
  return loads;
}

// Sums of several loads are nearly normal: the expected largest of n is sqrt(2 ln n) deviations
// above the mean. It cannot exceed the sum of the largest experts.
double busiest_rank(const std::vector<double>& loads, std::int64_t ranks) {
  const auto experts = std::ssize(loads);
  if (ranks <= 1 || experts == 0) return 1;
  const std::int64_t each = std::max<std::int64_t>(1, experts / ranks);
  const double largest = std::accumulate(loads.begin(), loads.begin() + each, 0.0) / number(each);
  if (each == 1) return largest;
  double variance = 0;
  for (const double load : loads) variance += (load - 1) * (load - 1) / number(experts);
  // Sampling without replacement.
  const double left = number(experts - each) / std::max(1.0, number(experts - 1));
  const double deviation = std::sqrt(variance / number(each) * left);
  return std::clamp(1 + deviation * std::sqrt(2 * std::log(number(ranks))), 1.0, largest);
}

double imbalance_of(const Routing& routing, const config::ModelConfig& model, std::int64_t layer) {
  const bool is_fixed = model.moe_expert_capacity_factor.has_value();
  if (routing.is_even() || model.experts() == 0 || is_fixed) return 1;
  if (!routing.skew && routing.layers.empty()) return routing.imbalance;
  std::vector<double> loads;
  if (routing.skew) {
    loads = skewed_loads(*routing.skew, model.experts());
  } else {
    const auto found = routing.layers.find(static_cast<int>(layer));
    loads = measured_loads(found == routing.layers.end() ? mean_of(routing.layers) : found->second,
                           model.experts());
  }
  const double busiest = busiest_rank(loads, model.expert_model_parallel_size);
  return std::max(1.0, std::round(busiest * kSteps) / kSteps);
}

double largest_imbalance(const Routing& routing, const config::ModelConfig& model) {
  if (routing.layers.empty()) return imbalance_of(routing, model, 0);
  double largest = 1;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    if (model.is_moe_layer(layer)) largest = std::max(largest, imbalance_of(routing, model, layer));
  }
  return largest;
}

}  // namespace weft::plan
