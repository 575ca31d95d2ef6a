#include "weft/plan/cost/order_bound.h"

#include <gtest/gtest.h>

#include "tests/schedule/plans_support.h"
#include "weft/exec/sim/bounds.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/price/simulated_step.h"

namespace weft::plan {
namespace order_bound_test {

using schedule::PlanCase;

// Step with equal nodes, and exchanges of `exchange` times a node.
exec::sim::SimulatedStep step_of(const std::vector<schedule::RankPlan>& plans, double exchange) {
  const auto cost = [&plans, exchange](int rank, int entry) -> exec::sim::Cost {
    const schedule::Entry& own =
        plans[static_cast<std::size_t>(rank)].training.entries[static_cast<std::size_t>(entry)];
    if (own.lane == schedule::Lane::Host) return {};
    return {.seconds = own.lane == schedule::Lane::Compute ? 1e-3 : exchange * 1e-3};
  };
  return simulated_step(plans, cost);
}

TEST(OrderBound, IsNeverAboveAStepNorBelowTheLongestLane) {
  for (const PlanCase& c : schedule::some_cases(13)) {
    SCOPED_TRACE(schedule::name(c));
    const std::vector<schedule::RankPlan> plans = schedule::plans_of(c);
    for (const double exchange : {0.1, 3.0}) {
      const exec::sim::SimulatedStep step = step_of(plans, exchange);
      const double bound = order_bound(ListSchedule(plans, step), step);
      EXPECT_LE(bound, exec::sim::simulate(step).step_seconds() * (1 + 1e-9));
      EXPECT_GE(bound, exec::sim::bounds_of(step).step_seconds() * (1 - 1e-9));
    }
  }
}

// The first exchange comes after a norm at least, and compute follows the last one.
TEST(OrderBound, CountsTheWayToALaneAndFromIt) {
  const std::vector<schedule::RankPlan> plans =
      schedule::plans_of({.micro_batches = 8, .overlap = true, .delay = true});
  const exec::sim::SimulatedStep step = step_of(plans, 4);
  EXPECT_GT(order_bound(ListSchedule(plans, step), step),
            exec::sim::bounds_of(step).communication_seconds + 2e-3);
}

}  // namespace order_bound_test
}  // namespace weft::plan
