#include "weft/train/program/shared_plans.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/schedule/text/plan_files.h"

namespace weft::train {
namespace {

void check(const std::vector<schedule::RankPlan>& plans) {
  const std::vector<std::string> complaints = schedule::verify_plan(plans);
  CHECK(complaints.empty(), "the schedule is wrong: {}", fmt::join(complaints, "; "));
}

// ConfigError if the order of collectives is invalid under NCCL. An order from a file may be
// correct and run on other backends only.
void check_calls(const std::vector<schedule::RankPlan>& plans) {
  const std::vector<std::string> complaints = schedule::verify_plan_calls(plans);
  if (complaints.empty()) return;
  throw base::ConfigError(base::text("runtime.backend=nccl needs one order of all collectives: {}",
                                     fmt::join(complaints, "; ")));
}

// Orders from files belong to steps within the row budget.
std::vector<schedule::RankPlan> plans_of(const config::Config& config,
                                         const schedule::Detail& detail,
                                         config::RowBudget budget) {
  std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)), budget, detail);
  if (config.runtime.schedule.empty() || budget == config::RowBudget::Lifted) {
    check(plans);
  } else {
    schedule::take_orders_from(config.runtime.schedule, plans);
  }
  if (config.runtime.backend == config::CommBackend::Nccl) check_calls(plans);
  return plans;
}

}  // namespace

std::vector<schedule::RankPlan> verified_plans(const config::Config& config,
                                               const schedule::Detail& detail) {
  return plans_of(config, detail, config::RowBudget::AsConfigured);
}

std::shared_ptr<const schedule::RankPlan> SharedPlans::of(int pp_rank, config::RowBudget budget) {
  const std::lock_guard lock(mutex_);
  Stages& stages = budget == config::RowBudget::Lifted ? lifted_ : as_configured_;
  if (stages.empty()) {
    std::vector<schedule::RankPlan> plans = plans_of(config_, detail_, budget);
    const int pp = static_cast<int>(plans.size());
    for (int stage = 0; stage < pp; ++stage) schedule::note_sends_over(plans, stage);
    for (schedule::RankPlan& plan : plans) {
      stages.push_back(std::make_shared<const schedule::RankPlan>(std::move(plan)));
    }
  }
  std::shared_ptr<const schedule::RankPlan> plan = stages[base::at(pp_rank)];
  // The only rank of its process keeps no graphs of other ranks.
  if (config_.runtime.backend != config::CommBackend::Threads) stages.clear();
  return plan;
}

}  // namespace weft::train
