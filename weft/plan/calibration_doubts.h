// What no machine takes: a calibration that was made while the machine was busy.
#pragma once

#include <string>
#include <vector>

#include "weft/plan/calibration.h"

namespace weft::plan {

// Each with its value and the range that machines have; empty: there is none.
std::vector<std::string> calibration_doubts(const Calibration& calibration);

}  // namespace weft::plan
