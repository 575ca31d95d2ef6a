// Counts a run's memory, and searches savings if it does not fit.
#pragma once

#include "weft/cli/memory/memory_report.h"
#include "weft/cli/terminal/progress.h"

namespace weft::cli {

// Selection of dry steps: ranks and savings of short steps only, or all. The planner's formula
// estimates the rest if it knows the GPU.
struct CountWish {
  enum class What { WhatIsShort, Everything };
  What ranks = What::Everything;  // WhatIsShort: only the largest rank of a long step
  What savings = What::WhatIsShort;
  // Program with the memory and the times. nullopt: the memory of Weft's engine, at the times of
  // the run's usual program. Megatron Bridge's memory is the planner's.
  std::optional<plan::Program> program = {};
};

// Counts every rank, and searches a fit if the run does not fit.
MemoryReport report_fit(const config::Config& asked,
                        const measure::MemoryRoom& room,
                        const measure::Tell& tell);
// Peaks and price of the run, without savings. ConfigError if Megatron Bridge is asked for and the
// planner does not know the room's GPU.
MemoryReport report_peaks(const config::Config& asked,
                          const measure::MemoryRoom& room,
                          const CountWish& wish,
                          const measure::Tell& tell);
// Adds savings and, if the run does not fit, a fit. The run must be predicted.
void add_savings(const config::Config& asked, const measure::Tell& tell, MemoryReport& report);
// True if a dry step takes less than a fifth of a second.
bool is_quick_to_count(const config::Config& asked);
// report_fit within half a second, for a GPU known to the planner; slower parts are estimated.
// nullopt: by an estimate the run needs far less than available.
std::optional<MemoryReport> report_quickly(const config::Config& asked,
                                           const config::Config& judged,
                                           const measure::MemoryRoom& room,
                                           const measure::Tell& tell);

// True if the free memory is less than an estimate's error.
bool is_narrow(const MemoryReport& report);

// Progress callback that shows on a line; any thread may call it.
measure::Tell shown_on(ProgressLine& line);

}  // namespace weft::cli
