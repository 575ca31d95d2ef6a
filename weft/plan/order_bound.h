// What no order of a step can beat, from what its nodes need of each other.
//
// A lane does one thing at a time. Of any nodes of it: the first of them to start comes after the
// longest way to it, the last is followed by the longest way from it, and between the two lies what
// all of them take. The longest lane alone is the case of ways of no length.
#pragma once

#include "weft/exec/sim/step.h"
#include "weft/plan/list_schedule.h"

namespace weft::plan {

// Of all lanes of all ranks. `step` is the one that the jobs are of.
double order_bound(const ListSchedule& jobs, const exec::sim::SimulatedStep& step);

}  // namespace weft::plan
