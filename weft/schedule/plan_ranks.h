// Plans of some pipeline ranks alone, for who looks at one rank and runs nothing.
#pragma once

#include <vector>

#include "weft/schedule/plan.h"

namespace weft::schedule {

// In the order of `pp_ranks`; each as plan_step makes it. Plans are verified all together.
std::vector<RankPlan> plan_ranks(const config::Config& config,
                                 const grid::Grid& grid,
                                 const std::vector<int>& pp_ranks,
                                 config::RowBudget budget = config::RowBudget::AsConfigured,
                                 const Detail& detail = {});

}  // namespace weft::schedule
