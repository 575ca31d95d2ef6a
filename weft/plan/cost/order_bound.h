// Lower bound over all orders of a step, from the dependencies of its nodes.
//
// A lane runs one node at a time. For any set of its nodes the bound is a sum: the longest path to
// the first start, the durations of all, and the longest path after the last end. The busiest lane
// alone is the case of empty paths.
#pragma once

#include "weft/exec/sim/step.h"
#include "weft/plan/order/list_schedule.h"

namespace weft::plan {

// Bound over all lanes of all ranks. `step`: the step of the jobs.
double order_bound(const ListSchedule& jobs, const exec::sim::SimulatedStep& step);

}  // namespace weft::plan
