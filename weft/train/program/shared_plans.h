// Verified graphs of a run, made once for all ranks that are threads of one process.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "weft/config/config.h"
#include "weft/schedule/plan.h"

namespace weft::train {

// Verified graphs of every pipeline rank, as each rank of the run plans them.
std::vector<schedule::RankPlan> verified_plans(const config::Config& config,
                                               const schedule::Detail& detail = {});

// Cache of plans, which depend on the config alone. The first caller plans; concurrent callers
// wait. Thread-safe.
class SharedPlans {
 public:
  // `config` must outlive it.
  explicit SharedPlans(const config::Config& config, schedule::Detail detail = {})
      : config_(config), detail_(std::move(detail)) {}

  // Plan of a pipeline rank, with each receive informed about its send. Lifted: without a row
  // budget.
  std::shared_ptr<const schedule::RankPlan> of(int pp_rank, config::RowBudget budget);

 private:
  using Stages = std::vector<std::shared_ptr<const schedule::RankPlan>>;

  const config::Config& config_;
  const schedule::Detail detail_;
  std::mutex mutex_;
  Stages as_configured_, lifted_;
};

}  // namespace weft::train
