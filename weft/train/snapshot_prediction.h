// How much host memory the copy of an asynchronous save takes, before the run: what each rank
// writes is decided by what all of them hold, so that all of them are asked.
#pragma once

#include <vector>

#include "weft/rules/judged_config.h"

namespace weft::train {

// Of each of these ranks, as BackgroundSaves::bytes() counts it.
std::vector<std::size_t> predict_snapshots(const rules::JudgedConfig& config,
                                           const std::vector<int>& ranks);

}  // namespace weft::train
