// Comparison of pipeline orders: idle time and kept activations.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/nominal_costs.h"

namespace weft::plan {

struct PipelineOrder {
  config::PipelineSchedule schedule = config::PipelineSchedule::OneForwardOneBackward;
  std::int64_t chunks = 1;  // per rank
  bool is_asked_for = false;
  double step_seconds = 0;
  double idle = 0;                    // mean share of the step in which a rank does not compute
  std::int64_t activation_bytes = 0;  // kept for the backward: peak over the ranks
  std::string refusal;  // reason why the order is impossible; the other numbers are then unset
};

// Every order of runtime.pipeline_schedule, for a config with a pipeline before the rules set keys.
// The number of chunks follows from the order.
using CostsOfRun = std::function<exec::sim::CostTable(const config::Config&,
                                                      const grid::Grid&,
                                                      const std::vector<schedule::RankPlan>&)>;
std::vector<PipelineOrder> compare_pipelines_at(const config::Config& config,
                                                const CostsOfRun& costs);
// Variant at nominal costs.
std::vector<PipelineOrder> compare_pipelines(const config::Config& config,
                                             const NominalRates& rates);

}  // namespace weft::plan
