// What a run will need of a GPU's memory, and what would free some of it, as people and programs
// read it: `weft memory`, and `weft check`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/measure/memory/memory_fit.h"

namespace weft::cli {

// What the numbers of a report come from: the engine's own step without arithmetic, or for runs
// whose steps are long, the planner's formula (measure/memory_estimate.h).
enum class Counted { ByDrySteps, ByThePlanner };
// The pipeline ranks of a text: the one that needs most with all that its peak is made of, or all.
enum class RanksShown { Largest, All };

struct MemoryReport {
  measure::MemoryForecast forecast;
  measure::MemoryRoom room = {};
  std::optional<measure::Savings> savings = {};  // none: not looked for
  std::vector<measure::Saving> cheapest = {};    // that help where it does not fit; two at most
  std::optional<measure::Fit> fit = {};          // where the run does not fit and they help
  std::string costs = {};  // at which times were computed; empty: they say nothing
  Counted peaks_counted = Counted::ByDrySteps;
  Counted savings_counted = Counted::ByDrySteps;

  bool is_priced() const { return !costs.empty(); }
  bool fits() const { return measure::overrun(forecast, room).is_none(); }  // or nobody knows
};

// What of host memory a rank has offloaded: no part of its peak.
std::size_t offloaded_bytes(const train::PredictedMemory& memory);
// Whether a dry step counted the rank; of an estimate the pieces are not known.
bool is_counted(const train::PredictedMemory& memory);
// Of the step, at the report's costs.
double share_of_step(double seconds, const measure::MemoryForecast& forecast);

// Of `weft check`: a line a pipeline rank.
base::Json stages_json(const measure::MemoryForecast& forecast);
std::string stages_text(const MemoryReport& report);

// Of `weft memory`: whether the run fits, and what each rank needs; known before any saving is.
std::string peaks_text(const MemoryReport& report, RanksShown ranks);
// What could be saved, what makes the run fit, and at last whether it fits.
std::string savings_text(const MemoryReport& report);
base::Json to_json(const MemoryReport& report);

}  // namespace weft::cli
