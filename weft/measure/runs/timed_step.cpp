#include "weft/measure/runs/timed_step.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/train/step.h"

namespace weft::measure {

train::StepTotals step_in_order(train::Engine& engine,
                                exec::Executor& order,
                                const train::StepInput& input,
                                exec::Tracing tracing) {
  const train::StepTotals totals = train::run_once(engine, order, input, tracing);
  refuse_repeated(totals, engine.config());
  return totals;
}

void refuse_repeated(const train::StepTotals& totals, const config::Config& config) {
  if (!totals.repeated && !totals.overflowed) return;
  throw base::ConfigError(
      base::text("a rank got more rows than model.moe_expert_rank_capacity_factor = {} leaves room "
                 "for, so that the step runs twice: raise the factor to time a step",
                 config.model.moe_expert_rank_capacity_factor.value_or(0)));
}

}  // namespace weft::measure
