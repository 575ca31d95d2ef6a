// How long a traced run's step would be in another order: its own node costs, simulated.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/overlap_prediction.h"
#include "weft/trace/span.h"

namespace weft::report {

class WhatIf {
 public:
  // `run` as the rules left it; traced steps of it that took `step_ms` in the mean. ConfigError
  // where the trace is not of that run.
  WhatIf(const config::Config& run, const std::vector<trace::Timeline>& traced, double step_ms);

  // The step from what its nodes cost, with no time between them.
  double replayed_ms() const;
  // By how much a step would be shorter with these words; none where nothing says so: the run is
  // refused, or would have nodes that were not measured.
  std::optional<double> gain_ms(std::span<const std::string> words) const;

 private:
  config::Config run_;
  plan::OverlapPrediction prediction_;
};

}  // namespace weft::report
