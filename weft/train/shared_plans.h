// The graphs of a run, verified: made once for all ranks that are threads of one process.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "weft/config/config.h"
#include "weft/schedule/plan.h"

namespace weft::train {

// Graphs of every pipeline rank, verified: what each rank of the run plans for itself.
std::vector<schedule::RankPlan> verified_plans(const config::Config& config,
                                               const schedule::Detail& detail = {});

// Planning is a function of the config, so that the ranks of a process need it only once. The first
// that asks plans, and those that ask meanwhile wait for it. Any thread may ask.
class SharedPlans {
 public:
  // The config outlives the plans.
  explicit SharedPlans(const config::Config& config, schedule::Detail detail = {})
      : config_(config), detail_(std::move(detail)) {}

  // Of that pipeline rank, with what its receives tell of its sends. Lifted: without the row budget
  // of a rank.
  std::shared_ptr<const schedule::RankPlan> of(int pp_rank, config::RowBudget budget);

 private:
  using Stages = std::vector<std::shared_ptr<const schedule::RankPlan>>;

  const config::Config& config_;
  const schedule::Detail detail_;
  std::mutex mutex_;
  Stages as_configured_, lifted_;
};

}  // namespace weft::train
