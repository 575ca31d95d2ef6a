// Command line of the harness or of Megatron-LM as a question for a search: the model, the number
// and kind of GPUs, and the batch.
#pragma once

#include <optional>

#include "weft/cli/plan/plan_modes.h"

namespace weft::cli {

// Words of the run. A line without a GPU gets the one of --gpu, and is judged for it.
RunArguments with_asked_gpu(const PlanOptions& options);

// Question behind such a line: its model without its layout, and sizes that the search's options
// leave open. nullopt: other words.
std::optional<PlanOptions> question_of_line(const PlanOptions& options);

}  // namespace weft::cli
