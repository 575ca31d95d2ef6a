#include "weft/plan/memory/step_memory.h"

#include "weft/derive/derived.h"
#include "weft/grid/grid.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/short_step.h"
#include "weft/rules/missing.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

std::vector<std::int64_t> activation_bytes(const config::Config& config) {
  const std::int64_t few = fewest_micro_batches(config.model, micro_batches_of(config));
  const config::Config shorter = with_micro_batches(config, few);
  std::vector<std::int64_t> bytes;
  if (!rules::schedule_limits(shorter).empty()) return bytes;
  const grid::Grid grid(derive::layout_of(shorter));
  for (const schedule::RankPlan& plan : schedule::plan_step(shorter, grid)) {
    bytes.push_back(schedule::activation_mark(plan.training,
                                              plan.anatomy,
                                              expected_load(shorter, plan.anatomy.flow)));
  }
  return bytes;
}

}  // namespace weft::plan
