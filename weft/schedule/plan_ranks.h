// Plans of some pipeline ranks, for inspection without a run.
#pragma once

#include <vector>

#include "weft/schedule/plan.h"

namespace weft::schedule {

// In the order of `pp_ranks`, equal to those of plan_step; not verified, because verify_plan needs
// all ranks.
std::vector<RankPlan> plan_ranks(const config::Config& config,
                                 const grid::Grid& grid,
                                 const std::vector<int>& pp_ranks,
                                 config::RowBudget budget = config::RowBudget::AsConfigured,
                                 const Detail& detail = {});

// Same plans without the forward-only graphs, for prices of training steps.
std::vector<RankPlan> plan_training(const config::Config& config,
                                    const grid::Grid& grid,
                                    const std::vector<int>& pp_ranks,
                                    config::RowBudget budget = config::RowBudget::AsConfigured,
                                    const Detail& detail = {});

}  // namespace weft::schedule
