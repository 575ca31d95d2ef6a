// Text and JSON form of a calibration.
//
//   {"format": "weft calibration 3",
//    "rates": {"product_flop": 1.5e-15, ..., "untraced": 1, "beside_communication": 0.04, "cores":
//    0}, "nodes": {"F.attention": {"product": 1.1, "attention": 1, ..., "seconds": 0}}}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/plan/hardware/calibration.h"

namespace weft::plan {

// Description in two lines.
std::string describe(const MachineRates& rates);

std::string print(const Calibration& calibration);
// ConfigError that names the faulty text.
Calibration parse_calibration(std::string_view text);

// Implausible values, from a machine that was busy, each with its plausible range; empty: none.
std::vector<std::string> calibration_doubts(const Calibration& calibration);

}  // namespace weft::plan
