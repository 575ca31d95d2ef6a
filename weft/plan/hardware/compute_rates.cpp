#include "weft/plan/hardware/compute_rates.h"

#include "weft/derive/derived.h"

namespace weft::plan {

double nominal_step_seconds(const config::Config& config, const NominalRates& rates) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  return simulate_nominal(config, grid, plans, rates).step_seconds();
}

double nominal_compute_seconds(const config::Config& config, const NominalRates& rates) {
  config::Config alone = config;
  alone.fabric = {};
  NominalRates free = rates;
  free.link_bytes_per_second = free.network_bytes_per_second = 1e15;
  free.link_latency_seconds = 0;
  return nominal_step_seconds(alone, free);
}

NominalRates rates_by_compute(const config::Config& config, double seconds) {
  NominalRates rates;
  const double nominal = nominal_compute_seconds(config, rates);
  if (seconds <= 0 || nominal <= 0) return rates;
  const double factor = nominal / seconds;
  rates.flops_per_second *= factor;
  rates.memory_bytes_per_second *= factor;
  rates.link_bytes_per_second = rates.network_bytes_per_second = rates.memory_bytes_per_second;
  return rates;
}

}  // namespace weft::plan
