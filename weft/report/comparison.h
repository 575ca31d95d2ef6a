// Predicted beside measured: what the nodes of a traced run cost, and what they cost at rates.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/calibration.h"
#include "weft/plan/nominal_costs.h"
#include "weft/report/report.h"

namespace weft::report {

struct PredictedRun {
  Comparison comparison;
  plan::NominalRates rates;  // nominal ones of the machine, for what is asked besides
};

// `run` as the rules left it. By a calibration (weft calibrate), where there is one; else at the
// rates that its GPU is advertised with; where none is named, at the rates of products, memory and
// links that fit this run best: then what differs is which nodes are dear. ConfigError where the
// trace is not of that run, or the calibration knows nothing of some of its nodes.
PredictedRun compare(const config::Config& run,
                     const std::vector<trace::Timeline>& traced,
                     double step_ms,
                     const std::optional<plan::Calibration>& calibration);

}  // namespace weft::report
