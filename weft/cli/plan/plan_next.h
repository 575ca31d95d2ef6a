// The commands that go on with a plan, to be pasted into a shell.
#pragma once

#include <vector>

#include "weft/cli/plan/plan_modes.h"
#include "weft/plan/search/search_report.h"

namespace weft::cli {

// As words for Megatron Bridge, as a recipe, and the layout in detail.
std::vector<plan::NextCommand> next_commands(const PlanOptions& options);

}  // namespace weft::cli
