// Rates fitted to a run's compute time by one factor.
#pragma once

#include "weft/config/config.h"
#include "weft/plan/cost/nominal_costs.h"

namespace weft::plan {

// Training step at these rates, and its time without communication, whatever links the config
// emulates.
double nominal_step_seconds(const config::Config& config, const NominalRates& rates);
double nominal_compute_seconds(const config::Config& config, const NominalRates& rates);

// Rates at which the run computes for `seconds` per step. Links that the config does not emulate
// count as memory copies. Without any compute: the default rates.
NominalRates rates_by_compute(const config::Config& config, double seconds);

}  // namespace weft::plan
