// What a step would cost on a machine nobody measured: operations over a rate, bytes over a
// bandwidth, rows routed evenly. Good enough to compare orders, not to promise milliseconds.
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
  // Where the config has no fabric:
  double link_bytes_per_second = 50e9;     // inside a machine, or a domain
  double network_bytes_per_second = 50e9;  // between them
  int most_in_domain = 0;                  // ranks that such links join beyond a machine
  double link_latency_seconds = 5e-6;
  double memory_bytes_per_second = 1e11;
  // Between a GPU and the memory of its host, each way; and of its share of that memory.
  double host_link_bytes_per_second = 48e9;
  double host_memory_bytes_per_second = 100e9;
  // So much nearer to their rates come copies and the host's cores than products do to theirs.
  double host_link_lead = 1, host_memory_lead = 1;
};

// What the GPU is advertised with, where that is known: no step is faster. A network of 400 Gb/s a
// GPU is taken. Without a GPU, the rates above.
NominalRates rates_of(const config::HardwareConfig& hardware);
// "989 TFLOP/s, 450 GB/s links, 50 GB/s between machines"
std::string describe(const NominalRates& rates);

// What one micro-batch brings a rank where routing is even.
schedule::Load expected_load(const config::Config& config, const schedule::TokenFlow& flow);

// By pipeline rank: the cost of every node its graph has. Communication is computed alone on the
// links: several operations at once do not slow each other down.
exec::sim::CostTable nominal_costs(const config::Config& config,
                                   const grid::Grid& grid,
                                   const std::vector<schedule::RankPlan>& plans,
                                   const NominalRates& rates);

// The training step at these costs; one rank stands for all of its pipeline stage.
exec::sim::Result simulate_nominal(const config::Config& config,
                                   const grid::Grid& grid,
                                   const std::vector<schedule::RankPlan>& plans,
                                   const NominalRates& rates);

}  // namespace weft::plan
