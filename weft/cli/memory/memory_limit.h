// Error for a run that exceeds its GPUs or its machine: the missing bytes, and changes that make it
// fit.
#pragma once

#include <string>
#include <vector>

#include "weft/cli/memory/memory_report.h"
#include "weft/rules/missing.h"

namespace weft::cli {

struct MemoryLimit {
  rules::Missing missing;         // its fix: all ways in one line
  std::vector<std::string> ways;  // changes that make it fit, the best first; one line each
  std::vector<measure::Saving> savings = {};  // savings named by the ways; at most two
  std::optional<measure::Fit> fit = {};
  double step_seconds = 0;  // step of the run: costs are shares of it
};

// "the run needs ...", and a line per way.
std::string to_text(const MemoryLimit& limit);
base::Json to_json(const MemoryLimit& limit);

// Limits for the memory of a GPU and of a machine, if exceeded. Includes the report's two cheapest
// savings and its fit.
std::vector<MemoryLimit> memory_limits(const MemoryReport& report, const config::Config& config);

// Variant for ranks on the machine's cores that exceed it without the parts a dry step would count
// (least_need).
std::optional<MemoryLimit> least_limit(const config::Config& config,
                                       const measure::MemoryRoom& room);

// Limits of a run about to start, counted by dry steps.
std::vector<MemoryLimit> limits_of_run(const config::Config& asked,
                                       const config::Config& judged,
                                       const measure::MemoryRoom& room,
                                       const measure::Tell& tell);

}  // namespace weft::cli
