#include "weft/plan/calibration.h"

#include <gtest/gtest.h>

#include "tests/schedule/plans_support.h"
#include "weft/base/error.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/nominal_costs.h"

namespace weft::plan {
namespace calibration_test {

using schedule::PlanCase;
using schedule::RankPlan;

// A machine on which every node takes so many times its nominal time, and each wait so long.
constexpr double kSlower = 7, kWake = 3e-6;

struct MadeUp {
  explicit MadeUp(const PlanCase& c)
      : config(schedule::config_of(c)),
        grid(derive::layout_of(config)),
        plans(schedule::plan_step(config, grid)) {
    for (const RankPlan& plan : plans) step.graphs.push_back(&plan.training);
    step.members = [this](int rank, const schedule::Entry& entry) {
      return schedule::stages_of_entry(plans.front().anatomy.pipeline, rank, entry);
    };
    const exec::sim::CostTable nominal = nominal_costs(config, grid, plans, {});
    const exec::sim::CostOf each = nominal.for_graphs(step.graphs);
    step.cost = [each](int rank, int entry) {
      exec::sim::Cost cost = each(rank, entry);
      cost.seconds *= kSlower;
      return cost;
    };
    step.overheads.wake_seconds = kWake;
    result = exec::sim::simulate(step);
  }

  config::Config config;
  grid::Grid grid;
  std::vector<RankPlan> plans;
  exec::sim::SimulatedStep step;
  exec::sim::Result result;
};

Calibration calibrated(const MadeUp& run) {
  return calibrate(run.config,
                   exec::sim::timelines_of(run.step, run.result),
                   run.result.step_seconds());
}

TEST(Calibration, TellsTheStepsOfOtherRunsOfTheMachine) {
  const MadeUp plain(PlanCase{.ep = 1, .dp = 1, .micro_batches = 4});
  const Calibration calibration = calibrated(plain);
  EXPECT_NEAR(calibration.nodes.at("F.experts").factor, kSlower, 0.01 * kSlower);
  EXPECT_NEAR(calibrated_seconds(plain.config, calibration),
              plain.result.step_seconds(),
              0.01 * plain.result.step_seconds());
  const MadeUp more(PlanCase{.layers = "mmdm", .ep = 1, .dp = 1, .micro_batches = 7});
  Calibration both = calibration;
  for (const auto& [key, factor] : calibrated(more).nodes) both.nodes.try_emplace(key, factor);
  EXPECT_NEAR(calibrated_seconds(more.config, both),
              more.result.step_seconds(),
              0.02 * more.result.step_seconds());
}

TEST(Calibration, NamesWhatItHasNotSeen) {
  const MadeUp dense(PlanCase{.layers = "dd", .ep = 1, .dp = 1});
  const MadeUp experts(PlanCase{.layers = "mm", .ep = 1, .dp = 1});
  try {
    calibrated_seconds(experts.config, calibrated(dense));
    FAIL() << "experts cost nothing";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("F.experts"), std::string::npos) << error.what();
  }
}

TEST(Calibration, IsWrittenAndReadBack) {
  const Calibration calibration = calibrated(MadeUp(PlanCase{.ep = 1, .dp = 1}));
  EXPECT_EQ(parse_calibration(print(calibration)), calibration);
  for (const char* wrong : {"",
                            "[]",
                            "{}",
                            R"({"format": "weft calibration 1"})",
                            R"({"format": "weft calibration 1", "wake_seconds": -1, "nodes": {}})",
                            R"({"format": "weft calibration 1", "wake_seconds": 0, "nodes": 3})",
                            R"({"format": "weft calibration 1", "wake_seconds": 0,
                                "nodes": {"F.experts": {"factor": 1e99, "seconds": 0}}})",
                            R"({"format": "weft calibration 1", "wake_seconds": 0,
                                "nodes": {"F.nothing": {"factor": 1, "seconds": 0}}})"}) {
    EXPECT_THROW(parse_calibration(wrong), base::ConfigError) << wrong;
  }
}

}  // namespace calibration_test
}  // namespace weft::plan
