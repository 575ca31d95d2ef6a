// Prediction against measurement: node costs of a traced run, and node costs at given rates.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/report/report.h"

namespace weft::report {

struct PredictedRun {
  Comparison comparison;
  plan::NominalRates rates;  // nominal rates of the machine, for other questions
};

// `run`: settled by the rules. Uses a calibration (weft calibrate) if given, otherwise the nominal
// rates of the run's GPU. Without a GPU name, fits rates of products, memory and links to this run;
// the differences then show expensive nodes. ConfigError if the trace belongs to another run, or
// the calibration lacks some of its nodes.
PredictedRun compare(const config::Config& run,
                     const std::vector<trace::Timeline>& traced,
                     double step_ms,
                     const std::optional<plan::Calibration>& calibration);

}  // namespace weft::report
