// What a step would cost on a machine nobody measured: operations over a rate, bytes over a
// bandwidth, rows routed evenly. Good enough to compare orders, not to promise milliseconds.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/grid/grid.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct NominalRates {
  double flops_per_second = 1e12;
  double link_bytes_per_second = 50e9;  // where the config has no fabric
  double link_latency_seconds = 5e-6;   // the same
  double memory_bytes_per_second = 1e11;
};

// What one micro-batch brings a rank where routing is even.
schedule::Load expected_load(const config::Config& config, const schedule::TokenFlow& flow);

// By pipeline rank: the cost of every node its graph has. Communication is computed alone on the
// links: several operations at once do not slow each other down.
exec::sim::CostTable nominal_costs(const config::Config& config,
                                   const grid::Grid& grid,
                                   const std::vector<schedule::RankPlan>& plans,
                                   const NominalRates& rates);

}  // namespace weft::plan
