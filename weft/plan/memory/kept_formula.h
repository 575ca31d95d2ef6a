// Bytes that a layer keeps for its backward, by a formula of its widths: inputs of products (in the
// products' format) and inputs of non-linear operations. Used for runs without a schedule in this
// build (formats below 16 bits, linear attention, stashed rows): the difference from the same run
// without these parts. All other memory is declared (memory_book.h).
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/plan/cost/workload.h"

namespace weft::plan {

// Bytes per micro-batch.
double kept_by_formula(const config::Config& config, const Workload& work, std::int64_t layer);

}  // namespace weft::plan
