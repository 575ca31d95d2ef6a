// Implausible calibration values, from a machine that was busy.
#pragma once

#include <string>
#include <vector>

#include "weft/plan/hardware/calibration.h"

namespace weft::plan {

// Each value with its plausible range; empty: all plausible.
std::vector<std::string> calibration_doubts(const Calibration& calibration);

}  // namespace weft::plan
