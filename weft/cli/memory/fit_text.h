// What makes a run fit that is too large, in words.
#pragma once

#include <string>

#include "weft/cli/memory/memory_report.h"

namespace weft::cli {

// What to do where no saving helps, of ranks on one machine's cores.
inline constexpr const char* kSmallerHere =
    "use a smaller model, fewer ranks or a smaller train.micro_batch_size, or spread the ranks "
    "over machines (runtime.backend=mpi)";

// "; not counted: multi-token prediction (...)", where the forecast leaves parts of the run out.
std::string not_counted_text(const measure::MemoryForecast& forecast);

// "moe_act frees 2.0 GiB for 1.2 % of the step: model.recompute_modules=[moe_act] ..."
std::string saving_line(const measure::Saving& saving, const MemoryReport& report);
// "moe_act alone makes it fit (70.1 GiB, 1.2 % of the step): ...", or why nothing does. Empty where
// it fits, and where nobody looked.
std::string fit_line(const MemoryReport& report);
// The same as a short list: a line for each saving, and one with the words to type.
std::string fit_lines(const MemoryReport& report);

}  // namespace weft::cli
