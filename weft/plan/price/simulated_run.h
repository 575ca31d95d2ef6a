// Simulated run: the real schedule of its step at the costs of a kind of GPU.
//
// A step of many micro-batches is shortened (short_step.h), and the cost of one more group is added
// for the rest. A part of equal length from the middle of the timelines represents such a group:
// all stages are in their steady state.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/grid/grid.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"
#include "weft/schedule/plan.h"
#include "weft/trace/exposure/shortened.h"
#include "weft/trace/span.h"

namespace weft::plan {

// Cost of every node by pipeline rank on this GPU. Kernels, dispatch, combine and layer exchanges
// are as in plan/cost/node_pricing.h, stretched by the launches and transfers in their layer's
// price (layer_prices.h). Other collectives cost bytes over links.
exec::sim::CostTable hardware_costs(const config::Config& config,
                                    const grid::Grid& grid,
                                    const std::vector<schedule::RankPlan>& plans,
                                    const Hardware& hardware,
                                    const Routing& routing = {});

// Simulated step with every micro-batch. Compute operations end as without concurrent transfers;
// the slowdown is a span of its own (trace::kSlowed).
std::vector<trace::Timeline> whole_timelines(const config::Config& config,
                                             const Hardware& hardware);

struct SimulatedRun {
  double step_ms = 0;                      // all micro-batches
  trace::Shortened shortened;              // micro-batches that the timelines show
  std::vector<trace::Timeline> timelines;  // by pipeline rank
};

// Simulates a config that passed rules::validate_schedule(). Parts without a schedule (fp8, graphs,
// multi-token prediction) are missing in the order, but products are priced in their format.
// `priced`: the config with those parts.
SimulatedRun simulate_run(const config::Config& config,
                          const config::Config& priced,
                          const Hardware& hardware,
                          const Routing& routing = {});

}  // namespace weft::plan
