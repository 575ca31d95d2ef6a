// What is said of a run that is too large for its GPUs or its machine: by how much, and what would
// make it fit.
#pragma once

#include <string>
#include <vector>

#include "weft/cli/memory/memory_report.h"
#include "weft/rules/missing.h"

namespace weft::cli {

struct MemoryLimit {
  rules::Missing missing;                     // its fix: all ways in one line
  std::vector<std::string> ways;              // what makes it fit first; each a line
  std::vector<measure::Saving> savings = {};  // that the ways name; two at most
  std::optional<measure::Fit> fit = {};
  double step_seconds = 0;  // of the run: costs are shares of it
};

// "the run needs ...", and a line for each way.
std::string to_text(const MemoryLimit& limit);
base::Json to_json(const MemoryLimit& limit);

// One for the memory of a GPU and one for that of a machine, where they are too small; with the two
// cheapest savings and what makes the run fit, where the report has them.
std::vector<MemoryLimit> memory_limits(const MemoryReport& report, const config::Config& config);

// The same where the ranks on the machine's cores need too much already without what a dry step
// would count (least_need).
std::optional<MemoryLimit> least_limit(const config::Config& config,
                                       const measure::MemoryRoom& room);

// Of a run that is about to start, counted by dry steps.
std::vector<MemoryLimit> limits_of_run(const config::Config& asked,
                                       const config::Config& judged,
                                       const measure::MemoryRoom& room,
                                       const measure::Tell& tell);

}  // namespace weft::cli
