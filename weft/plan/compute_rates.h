// Rates at which a run computes as long as it did: what a machine does, told by one number.
#pragma once

#include "weft/config/config.h"
#include "weft/plan/nominal_costs.h"

namespace weft::plan {

// The training step at these rates, and the same if communication took no time, whatever links the
// config emulates.
double nominal_step_seconds(const config::Config& config, const NominalRates& rates);
double nominal_compute_seconds(const config::Config& config, const NominalRates& rates);

// Those of a machine on which the run computes for so many seconds in a step. Links that the config
// does not emulate copy memory. Where nothing is computed, rates nobody measured.
NominalRates rates_by_compute(const config::Config& config, double seconds);

}  // namespace weft::plan
