// Prediction of the host memory for the copy of an asynchronous save. All ranks' states decide what
// each rank writes, so all of them are computed.
#pragma once

#include <vector>

#include "weft/rules/judged_config.h"

namespace weft::train {

// Bytes for each of `ranks`, as BackgroundSaves::bytes() counts them.
std::vector<std::size_t> predict_snapshots(const rules::JudgedConfig& config,
                                           const std::vector<int>& ranks);

}  // namespace weft::train
