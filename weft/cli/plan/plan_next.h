// Follow-up commands of a plan, to paste into a shell.
#pragma once

#include <vector>

#include "weft/cli/plan/plan_modes.h"
#include "weft/plan/search/search_report.h"

namespace weft::cli {

// Commands for Megatron Bridge words, a recipe, and the layout in detail.
std::vector<plan::NextCommand> next_commands(const PlanOptions& options);

}  // namespace weft::cli
