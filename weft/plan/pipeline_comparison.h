// The orders of a pipeline beside each other: how long a rank is idle, and what it keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/nominal_costs.h"

namespace weft::plan {

struct PipelineOrder {
  config::PipelineSchedule schedule = config::PipelineSchedule::OneForwardOneBackward;
  std::int64_t chunks = 1;  // of a rank
  bool is_asked_for = false;
  double step_seconds = 0;
  double idle = 0;  // share of the step in which a rank does not compute: the mean
  std::int64_t activation_bytes = 0;  // kept for the backward, at most and on any rank
  std::string refusal;                // why there is no such order; the numbers are of none then
};

// Every order that runtime.pipeline_schedule names, for a config with a pipeline, as it is before
// the rules have set anything; the chunks of a rank are as the order needs them.
using CostsOfRun = std::function<exec::sim::CostTable(const config::Config&,
                                                      const grid::Grid&,
                                                      const std::vector<schedule::RankPlan>&)>;
std::vector<PipelineOrder> compare_pipelines_at(const config::Config& config,
                                                const CostsOfRun& costs);
// The same at nominal costs.
std::vector<PipelineOrder> compare_pipelines(const config::Config& config,
                                             const NominalRates& rates);

}  // namespace weft::plan
