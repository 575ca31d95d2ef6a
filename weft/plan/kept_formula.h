// What a layer keeps for its backward, by a formula of its widths: the inputs of its products (in
// the products' own format) and of what is not linear. For the parts of runs that this build has no
// schedule of (formats of less than 16 bits, linear attention, stashed rows): how much they keep
// beside the same run without them. All else is declared (memory_book.h).
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/plan/workload.h"

namespace weft::plan {

// Bytes of one micro-batch.
double kept_by_formula(const config::Config& config, const Workload& work, std::int64_t layer);

}  // namespace weft::plan
