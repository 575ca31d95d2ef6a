#include "weft/report/what_if.h"

#include <memory>

#include "weft/base/error.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/price/overlap_prediction.h"
#include "weft/plan/price/short_step.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/plan.h"
#include "weft/words/resolution.h"

namespace weft::report {
namespace {

double seconds_at(const config::Config& config,
                  std::int64_t micro_batches,
                  const exec::sim::CostTable& costs) {
  const config::Config few = plan::with_micro_batches(config, micro_batches);
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(few, grid::Grid(derive::layout_of(few)));
  const exec::sim::CostTable all = exec::sim::complete(costs, plan::training_graphs(plans));
  return exec::sim::simulate(plan::simulated_step(plans, all)).step_seconds();
}

}  // namespace

WhatIf WhatIf::of_measured(const config::Config& run,
                           const std::vector<trace::Timeline>& traced,
                           double step_ms) {
  const auto prediction =
      std::make_shared<plan::OverlapPrediction>(run, std::nullopt, traced, step_ms / 1e3);
  return WhatIf(
      run,
      [prediction](const config::Config& config) { return prediction->step_seconds(config); },
      [prediction](const config::Config& config) { return prediction->ideal_seconds(config); },
      Must::Run);
}

WhatIf WhatIf::of_simulated(const config::Config& run, const std::vector<trace::Timeline>& traced) {
  const auto costs = std::make_shared<exec::sim::CostTable>(exec::sim::measure(traced));
  const SecondsOf seconds = [costs](const config::Config& config) {
    const config::Config asked = rules::validate_schedule(config).config;
    const auto of_some = [&](std::int64_t count) { return seconds_at(asked, count, *costs); };
    return plan::whole_step(asked, of_some).seconds();
  };
  return WhatIf(run, seconds, seconds, Must::BeLegal);
}

std::optional<double> WhatIf::gain_ms(std::span<const std::string> words) const {
  try {
    const rules::Verdict verdict = rules::judge(words::with_words(run_, words));
    const bool may_be = must_ == Must::Run ? verdict.runs() : verdict.legal();
    if (!may_be) return std::nullopt;
    return (step_seconds_(run_) - step_seconds_(verdict.config)) * 1e3;
  } catch (const base::ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace weft::report
