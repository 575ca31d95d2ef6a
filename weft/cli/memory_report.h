// What a run will need of a GPU's memory, and what would free some of it, as people and programs
// read it: `weft memory`, and `weft check --memory`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/progress.h"
#include "weft/measure/memory_forecast.h"
#include "weft/measure/memory_savings.h"
#include "weft/rules/missing.h"

namespace weft::cli {

// What a rank has to fit in.
struct Room {
  std::string gpu;
  std::size_t bytes = 0;
};
// Of the GPU that hardware.* names; none: it is not known.
std::optional<Room> room_of(const config::HardwareConfig& hardware);

struct MemoryReport {
  measure::MemoryForecast forecast;
  std::optional<Room> room = {};
  std::optional<measure::Savings> savings = {};  // none: not looked for
  std::optional<measure::Fit> fit = {};          // where the run does not fit and they help
  std::string costs = {};                        // at which times were computed

  bool fits() const;  // or nobody knows
};

// Looks also for what would make it fit, where it does not.
MemoryReport report_fit(const config::Config& asked,
                        const std::optional<Room>& room,
                        const measure::Tell& tell);
// The same with the savings in any case.
MemoryReport report_memory(const config::Config& asked,
                           const std::optional<Room>& room,
                           const measure::Tell& tell);

// Shows on a progress line what they tell, from whatever thread.
measure::Tell shown_on(ProgressLine& line);

// Where the room is less than a rank needs: with the two cheapest savings, and what makes it fit.
std::optional<rules::Missing> gpu_limit(const MemoryReport& report);

// Of `weft check`: a line a pipeline rank.
base::Json stages_json(const measure::MemoryForecast& forecast);
std::string stages_text(const measure::MemoryForecast& forecast);

// Of `weft memory`.
base::Json to_json(const MemoryReport& report);
std::string to_text(const MemoryReport& report);

}  // namespace weft::cli
