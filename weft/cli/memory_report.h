// What a run will need of a GPU's memory, and what would free some of it, as people and programs
// read it: `weft memory`, and `weft check`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/progress.h"
#include "weft/measure/memory_fit.h"

namespace weft::cli {

// What the numbers of a report come from: the engine's own step without arithmetic, or for the
// savings of runs whose steps are long, the planner (measure/memory_estimate.h).
enum class Counted { ByDrySteps, ByThePlanner };

struct MemoryReport {
  measure::MemoryForecast forecast;
  measure::MemoryRoom room = {};
  std::optional<measure::Savings> savings = {};  // none: not looked for
  std::vector<measure::Saving> cheapest = {};    // that help where it does not fit; two at most
  std::optional<measure::Fit> fit = {};          // where the run does not fit and they help
  std::string costs = {};                        // at which times were computed
  Counted savings_counted = Counted::ByDrySteps;

  bool fits() const { return measure::overrun(forecast, room).is_none(); }  // or nobody knows
};

// Looks also for what would make it fit, where it does not.
MemoryReport report_fit(const config::Config& asked,
                        const measure::MemoryRoom& room,
                        const measure::Tell& tell);
// The same with the savings in any case.
MemoryReport report_memory(const config::Config& asked,
                           const measure::MemoryRoom& room,
                           const measure::Tell& tell);
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

// Of `weft check`: a line a pipeline rank.
base::Json stages_json(const measure::MemoryForecast& forecast);
std::string stages_text(const measure::MemoryForecast& forecast);

// Of `weft memory`.
base::Json to_json(const MemoryReport& report);
std::string to_text(const MemoryReport& report);

}  // namespace weft::cli
