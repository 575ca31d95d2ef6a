// One run on the clock: the real schedule of its step, at the costs of a kind of GPU.
//
// A step of many micro-batches is shortened to as many as keep its order (short_step.h); what one
// more group of them takes is added for the rest. As long a part from the middle of the timelines,
// where all stages are past their warm-up and none is at its end, stands for such a group.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/grid/grid.h"
#include "weft/plan/hardware.h"
#include "weft/plan/routing.h"
#include "weft/schedule/plan.h"
#include "weft/trace/shortened.h"
#include "weft/trace/span.h"

namespace weft::plan {

// By pipeline rank: what every node of its graph takes on this GPU. Kernels, dispatch, combine and
// other exchanges of layers as in node_pricing.h, longer by what launches and transfers beside them
// add to the price of their layer (layer_prices.h); other collectives by bytes over the links.
exec::sim::CostTable hardware_costs(const config::Config& config,
                                    const grid::Grid& grid,
                                    const std::vector<schedule::RankPlan>& plans,
                                    const Hardware& hardware,
                                    const Routing& routing = {});

// A step with every micro-batch on the clock. Operations of compute end where they would without
// transfers beside them; what these take is a part of its own (trace::kSlowed).
std::vector<trace::Timeline> whole_timelines(const config::Config& config,
                                             const Hardware& hardware);

struct SimulatedRun {
  double step_ms = 0;                      // of all micro-batches
  trace::Shortened shortened;              // which of them the timelines show
  std::vector<trace::Timeline> timelines;  // by pipeline rank
};

// Of a config that rules::validate_schedule() has passed: parts that no schedule has (fp8, graphs,
// multi-token prediction) are left out of the order, but products are priced in their own numbers.
// `priced` is the config as it is priced, with those parts.
SimulatedRun simulate_run(const config::Config& config,
                          const config::Config& priced,
                          const Hardware& hardware,
                          const Routing& routing = {});

}  // namespace weft::plan
