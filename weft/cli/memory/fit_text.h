// Text about changes that make a too large run fit.
#pragma once

#include <string>

#include "weft/cli/memory/memory_report.h"

namespace weft::cli {

// Advice for ranks on one machine's cores if no saving helps.
inline constexpr const char* kSmallerHere =
    "use a smaller model, fewer ranks or a smaller train.micro_batch_size, or spread the ranks "
    "over machines (runtime.backend=mpi)";

// "; not counted: multi-token prediction (...)", if the forecast omits parts of the run.
std::string not_counted_text(const measure::MemoryForecast& forecast);

// "moe_act frees 2.0 GiB for 1.2 % of the step: model.recompute_modules=[moe_act] ..."
std::string saving_line(const measure::Saving& saving, const MemoryReport& report);
// "moe_act alone makes it fit (70.1 GiB, 1.2 % of the step): ...", or the reason why nothing does.
// Empty if it fits, or savings were not searched.
std::string fit_line(const MemoryReport& report);
// Variant as a short list: a line per saving, and one with the words to type.
std::string fit_lines(const MemoryReport& report);

}  // namespace weft::cli
