// Memory need of a run on a GPU with possible savings, as text and JSON, for `weft memory` and
// `weft check`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/measure/memory/memory_fit.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::cli {

// Source of a report's numbers: dry steps of the engine, or for long steps the planner's formula
// (measure/memory/memory_estimate.h).
enum class Counted { ByDrySteps, ByThePlanner };
// Pipeline ranks in a text: the largest with the parts of its peak, or all.
enum class RanksShown { Largest, All };

struct MemoryReport {
  measure::MemoryForecast forecast;
  measure::MemoryRoom room = {};
  std::optional<measure::Savings> savings = {};  // nullopt: not searched
  std::vector<measure::Saving> cheapest = {};    // helpful ones if it does not fit; at most two
  std::optional<measure::Fit> fit = {};          // set if the run does not fit and savings suffice
  std::string costs = {};                        // source of the times; empty: no times
  Counted peaks_counted = Counted::ByDrySteps;
  Counted savings_counted = Counted::ByDrySteps;
  plan::Program program = plan::Program::Weft;         // program with this memory
  std::optional<plan::Program> program_of_times = {};  // nullopt: times are nominal

  // True if savings were not searched: each needs a long dry step, and no formula knows the run.
  bool savings_wait = false;
  // True if savings, and peaks that are not counted, come from models of some of the layers
  // (measure::extend_layers).
  bool is_extended = false;

  bool is_priced() const { return !costs.empty(); }
  bool fits() const { return measure::overrun(forecast, room).is_none(); }  // true also if unknown
};

// Offloaded host bytes of a rank, outside of its peak.
std::size_t offloaded_bytes(const train::PredictedMemory& memory);
// True if a dry step counted the rank; an estimate has no pieces.
bool is_counted(const train::PredictedMemory& memory);
// Share of the step at the report's costs.
double share_of_step(double seconds, const measure::MemoryForecast& forecast);

// For `weft check`: one line per pipeline rank.
base::Json stages_json(const measure::MemoryForecast& forecast);
std::string stages_text(const MemoryReport& report);

// "memory as Weft runs it; times as Megatron Bridge runs it"
std::string program_line(const MemoryReport& report);
// For `weft memory`: program, verdict and need of each rank, available before the savings.
std::string peaks_text(const MemoryReport& report, RanksShown ranks);
// Possible savings, a fit, and finally the verdict.
std::string savings_text(const MemoryReport& report);
base::Json to_json(const MemoryReport& report);

}  // namespace weft::cli
