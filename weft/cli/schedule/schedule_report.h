// What `weft schedule` found, in text, JSON and as a picture.
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

// A step of which one rank stands for all of its pipeline stage.
struct SimulatedStep {
  exec::sim::SimulatedStep step;
  exec::sim::Result result;
  std::optional<trace::Exposure> exposure;  // none: too many spans to look at
  std::string costs;                        // where they come from, in words
};

struct ScheduleReport {
  const config::Config& config;
  const grid::Grid& grid;
  const std::vector<schedule::RankPlan>& plans;  // by pipeline rank
  std::string source;                            // the folder the graphs were read from; or empty
  std::vector<std::string> complaints;
  std::optional<SimulatedStep> simulated;          // of a schedule without complaints
  std::vector<std::int64_t> activation_bytes{};    // by pipeline rank, of the same
  std::vector<plan::PipelineOrder> orders{};       // of a pipeline, where they were compared
  std::optional<plan::Improvement> improvement{};  // where it was asked for

  bool valid() const { return complaints.empty(); }
};

std::size_t nodes_of(const ScheduleReport& report);
base::Json to_json(const ScheduleReport& report);
std::string to_text(const ScheduleReport& report);

// What of a step a picture shows.
struct PictureWindow {
  double from_ms = 0;
  double to_ms = 0;
  bool is_cut = false;  // less than was asked for: nothing opens a picture of more
};
// As much of what is asked for (the whole step where nothing is) as a picture can hold. Only of a
// schedule that was simulated.
PictureWindow picture_window(const SimulatedStep& simulated,
                             const std::optional<PictureWindow>& asked);
std::string to_svg(const ScheduleReport& report, const PictureWindow& window);

}  // namespace weft::cli
