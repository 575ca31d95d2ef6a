// Report of `weft schedule`, as text, JSON and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/exec/sim/simulate.h"
#include "weft/grid/grid.h"
#include "weft/plan/order/improve.h"
#include "weft/plan/price/pipeline_comparison.h"
#include "weft/schedule/plan.h"
#include "weft/trace/exposure/exposure.h"

namespace weft::cli {

// Simulated step with one rank per pipeline stage.
struct SimulatedStep {
  exec::sim::SimulatedStep step;
  exec::sim::Result result;
  std::optional<trace::Exposure> exposure;  // nullopt: too many spans
  std::string costs;                        // description of their source
};

struct ScheduleReport {
  const config::Config& config;
  const grid::Grid& grid;
  const std::vector<schedule::RankPlan>& plans;  // by pipeline rank
  std::string source;                            // folder of the graphs; empty: planned
  std::vector<std::string> complaints;
  std::optional<SimulatedStep> simulated;        // set if there are no complaints
  std::vector<std::int64_t> activation_bytes{};  // by pipeline rank; set if there are no complaints
  std::vector<plan::PipelineOrder> orders{};     // compared pipeline orders, if requested
  std::optional<plan::Improvement> improvement{};  // set if requested

  bool valid() const { return complaints.empty(); }
};

std::size_t nodes_of(const ScheduleReport& report);
base::Json to_json(const ScheduleReport& report);
std::string to_text(const ScheduleReport& report);

// Time window of a step in a picture.
struct PictureWindow {
  double from_ms = 0;
  double to_ms = 0;
  bool is_cut = false;  // shortened: larger pictures cannot be opened
};
// Largest part of the requested window (default: the whole step) that a picture can hold. For
// simulated schedules only.
PictureWindow picture_window(const SimulatedStep& simulated,
                             const std::optional<PictureWindow>& asked);
std::string to_svg(const ScheduleReport& report, const PictureWindow& window);

}  // namespace weft::cli
