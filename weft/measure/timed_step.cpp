#include "weft/measure/timed_step.h"

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::measure {

void refuse_repeated(const train::StepTotals& totals, const config::Config& config) {
  if (!totals.repeated) return;
  throw base::ConfigError(
      base::text("a rank got more rows than model.moe_expert_rank_capacity_factor = {} leaves room "
                 "for, and the step ran twice: raise the factor to time a step",
                 config.model.moe_expert_rank_capacity_factor.value_or(0)));
}

}  // namespace weft::measure
