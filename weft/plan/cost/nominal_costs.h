// Step cost on an unmeasured machine: operations over a rate, bytes over a bandwidth, rows routed
// evenly. Suitable to compare orders, not to predict milliseconds.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/simulate.h"
#include "weft/grid/grid.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct NominalRates {
  double flops_per_second = 1e12;
  // Used if the config has no fabric:
  double link_bytes_per_second = 50e9;     // inside a machine or an NVLink domain
  double network_bytes_per_second = 50e9;  // between them
  int most_in_domain = 0;                  // ranks joined by such links beyond a machine
  double link_latency_seconds = 5e-6;
  double memory_bytes_per_second = 1e11;
  // Between a GPU and host memory, per direction; and a GPU's share of host memory.
  double host_link_bytes_per_second = 48e9;
  double host_memory_bytes_per_second = 100e9;
  // Factor by which copies and host cores come closer to their rates than products do.
  double host_link_lead = 1, host_memory_lead = 1;
};

// Advertised rates of the GPU, if known: no step is faster. Assumes a network of 400 Gb/s per GPU.
// Without a GPU: the default rates.
NominalRates rates_of(const config::HardwareConfig& hardware);
// "989 TFLOP/s, 450 GB/s links, 50 GB/s between machines"
std::string describe(const NominalRates& rates);

// Load of a rank by one micro-batch under even routing.
schedule::Load expected_load(const config::Config& config, const schedule::TokenFlow& flow);

// Cost of every node of each pipeline rank's graph. Communication is priced alone on its links:
// concurrent operations do not slow each other.
exec::sim::CostTable nominal_costs(const config::Config& config,
                                   const grid::Grid& grid,
                                   const std::vector<schedule::RankPlan>& plans,
                                   const NominalRates& rates);

// Training step at these costs; one rank stands for its pipeline stage.
exec::sim::Result simulate_nominal(const config::Config& config,
                                   const grid::Grid& grid,
                                   const std::vector<schedule::RankPlan>& plans,
                                   const NominalRates& rates);

}  // namespace weft::plan
