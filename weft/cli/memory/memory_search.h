// Counts the memory of a run, and looks for savings where it does not fit.
#pragma once

#include "weft/cli/memory/memory_report.h"
#include "weft/cli/terminal/progress.h"

namespace weft::cli {

// What is counted by dry steps: ranks and savings of runs whose steps are short, or all of them.
// What is not counted is estimated by the planner's formula, where it knows the GPU.
struct CountWish {
  enum class What { WhatIsShort, Everything };
  What ranks = What::Everything;  // WhatIsShort: of a long step the rank alone that needs most
  What savings = What::WhatIsShort;
};

// Looks also for what would make it fit, where it does not. Every rank is counted.
MemoryReport report_fit(const config::Config& asked,
                        const measure::MemoryRoom& room,
                        const measure::Tell& tell);
// The peaks of the run and its price, without savings.
MemoryReport report_peaks(const config::Config& asked,
                          const measure::MemoryRoom& room,
                          const CountWish& wish,
                          const measure::Tell& tell);
// Adds the savings, and where it does not fit what would make it fit. Of a run that is predicted.
void add_savings(const config::Config& asked, const measure::Tell& tell, MemoryReport& report);
// Whether a dry step of the run takes less than a fifth of a second.
bool is_quick_to_count(const config::Config& asked);
// report_fit within half a second, of a run on a GPU that the planner knows: what takes longer is
// estimated. Nothing where an estimate says that it needs far less than there is.
std::optional<MemoryReport> report_quickly(const config::Config& asked,
                                           const config::Config& judged,
                                           const measure::MemoryRoom& room,
                                           const measure::Tell& tell);

// Whether what stays free is less than the error of an estimate.
bool is_narrow(const MemoryReport& report);

// Shows on a progress line what they tell, from whatever thread.
measure::Tell shown_on(ProgressLine& line);

}  // namespace weft::cli
