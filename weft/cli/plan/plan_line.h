// A line of the harness or of Megatron-LM as the question of a search: which model, on how many
// GPUs of which kind, with which batch.
#pragma once

#include <optional>

#include "weft/cli/plan/plan_modes.h"

namespace weft::cli {

// What the words of a search mean where they are such a line: its model without its layout, and the
// sizes that no option of the search says. Nothing for other words.
std::optional<PlanOptions> question_of_line(const PlanOptions& options);

}  // namespace weft::cli
