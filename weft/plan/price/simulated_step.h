// Conversion of plans into a step for the simulator: one rank stands for its pipeline stage.
#pragma once

#include <vector>

#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

std::vector<const schedule::Graph*> training_graphs(const std::vector<schedule::RankPlan>& plans);

// Uses the training graphs of `plans`, by pipeline rank; `plans` must outlive it.
exec::sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                        exec::sim::CostOf cost,
                                        const exec::sim::Overheads& overheads = {});
// Variant with a table of costs. ConfigError with the nodes that it lacks.
exec::sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                        const exec::sim::CostTable& costs,
                                        const exec::sim::Overheads& overheads = {});

}  // namespace weft::plan
