// Counts the memory of a run, and looks for savings where it does not fit.
#pragma once

#include "weft/cli/memory_report.h"
#include "weft/cli/progress.h"

namespace weft::cli {

// Looks also for what would make it fit, where it does not.
MemoryReport report_fit(const config::Config& asked,
                        const measure::MemoryRoom& room,
                        const measure::Tell& tell);
// The peaks of the run and its price, without savings.
MemoryReport report_peaks(const config::Config& asked,
                          const measure::MemoryRoom& room,
                          const measure::Tell& tell);
// Adds the savings, and where it does not fit what would make it fit. Of a run that is predicted.
void add_savings(const config::Config& asked, const measure::Tell& tell, MemoryReport& report);
// Whether a dry step of the run takes less than a second, so that one is taken for every saving.
bool is_quick_to_count(const config::Config& asked);
// report_fit within some seconds, of a run of any size. Nothing where an estimate says that it
// needs far less than there is.
std::optional<MemoryReport> report_quickly(const config::Config& asked,
                                           const config::Config& judged,
                                           const measure::MemoryRoom& room,
                                           const measure::Tell& tell);

// Shows on a progress line what they tell, from whatever thread.
measure::Tell shown_on(ProgressLine& line);

}  // namespace weft::cli
