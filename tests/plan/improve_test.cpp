#include "weft/plan/order/improve.h"

#include <gtest/gtest.h>

#include "tests/schedule/plans_support.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/bounds.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/schedule/text/text.h"

namespace weft::plan {
namespace improve_test {

using schedule::PlanCase;
using schedule::RankPlan;

// Links on which communication takes about as long as compute.
constexpr NominalRates kSlowLinks{.link_bytes_per_second = 2e9, .network_bytes_per_second = 2e9};

struct Given {
  explicit Given(const PlanCase& c)
      : config(schedule::config_of(c)),
        plans(schedule::plans_of(c)),
        costs(nominal_costs(config, grid::Grid(derive::layout_of(config)), plans, kSlowLinks)) {}

  ImproveRequest request(int tries) const {
    return {.plans = plans,
            .costs = costs,
            .load = expected_load(config, plans.front().anatomy.flow),
            .tries = tries};
  }

  config::Config config;
  std::vector<RankPlan> plans;
  exec::sim::CostTable costs;
};

constexpr auto kOverlapped = [] {
  return PlanCase{.micro_batches = 8, .overlap = true, .delay = true};
};

double simulated(const Given& given, const std::vector<RankPlan>& plans) {
  return exec::sim::simulate(simulated_step(plans, given.costs)).step_seconds();
}

TEST(Improve, EveryOrderFoundIsVerifiedAndNeverLonger) {
  for (const PlanCase& c : schedule::some_cases(13)) {
    SCOPED_TRACE(schedule::name(c));
    const Given given(c);
    const Improvement found = improve(given.request(30));
    EXPECT_EQ(schedule::verify_plan(found.plans), std::vector<std::string>{});
    EXPECT_LE(found.found_seconds, found.given_seconds);
    EXPECT_GE(found.found_seconds, found.bound_seconds * (1 - 1e-9));
    EXPECT_LE(found.found_bytes, std::max(found.limit_bytes, found.given_bytes));
    EXPECT_DOUBLE_EQ(simulated(given, found.plans), found.found_seconds);
    EXPECT_DOUBLE_EQ(simulated(given, given.plans), found.given_seconds);
  }
}

TEST(Improve, AThirdOfWhatTheMergedOrderLeavesAboveTheBoundIsGone) {
  const Given given(kOverlapped());
  const Improvement found = improve(given.request(400));
  EXPECT_GT(found.share_gone(), 1.0 / 3);
}

TEST(Improve, TheSameOrderIsFoundTwice) {
  const Given given(kOverlapped());
  const Improvement one = improve(given.request(60)), two = improve(given.request(60));
  EXPECT_EQ(schedule::print(one.plans.front().training),
            schedule::print(two.plans.front().training));
}

TEST(Improve, AnOrderThatKeepsMoreThanItMayIsNotTaken) {
  const Given given(kOverlapped());
  const Improvement free = improve(given.request(200));
  ASSERT_GT(free.found_bytes, free.given_bytes);
  ImproveRequest request = given.request(200);
  request.memory_limit = free.given_bytes;
  const Improvement bound = improve(request);
  EXPECT_LE(bound.found_bytes, free.given_bytes);
  EXPECT_GT(bound.over_limit, 0);
  EXPECT_GE(bound.found_seconds, free.found_seconds);
}

TEST(Improve, EndsWhenItIsTold) {
  const Given given(kOverlapped());
  ImproveRequest request = given.request(100000);
  request.goes_on = [](int tried) { return tried < 7; };
  EXPECT_EQ(improve(request).tried, 7);
}

}  // namespace improve_test
}  // namespace weft::plan
