// The one way in which plans become a step for the simulator: a rank stands for all of its pipeline
// stage.
#pragma once

#include <vector>

#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

std::vector<const schedule::Graph*> training_graphs(const std::vector<schedule::RankPlan>& plans);

// The training graphs of `plans`, which outlive it, by pipeline rank.
exec::sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                        exec::sim::CostOf cost,
                                        const exec::sim::Overheads& overheads = {});
// The same with a table's costs. ConfigError naming the nodes that it lacks.
exec::sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                        const exec::sim::CostTable& costs,
                                        const exec::sim::Overheads& overheads = {});

}  // namespace weft::plan
