// What is said of a run that is too large for its GPUs or its machine: by how much, and what would
// make it fit.
#pragma once

#include <string>
#include <vector>

#include "weft/cli/memory_report.h"
#include "weft/rules/missing.h"

namespace weft::cli {

// One for the memory of a GPU and one for that of a machine, where they are too small; with the two
// cheapest savings and what makes the run fit, where the report has them.
std::vector<rules::Missing> memory_limits(const MemoryReport& report, const config::Config& config);

// The same where the ranks on the machine's cores need too much already without what a dry step
// would count (least_need).
std::optional<rules::Missing> least_limit(const config::Config& config,
                                          const measure::MemoryRoom& room);

// Of a run that is about to start, counted by dry steps.
std::vector<rules::Missing> limits_of_run(const config::Config& asked,
                                          const config::Config& judged,
                                          const measure::MemoryRoom& room,
                                          const measure::Tell& tell);

// "it fits with ..." where it does not fit, in a line; empty where it does.
std::string fit_text(const MemoryReport& report);

}  // namespace weft::cli
