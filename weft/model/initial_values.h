// Initial weights: drawn on the host by several threads, while earlier batches are uploaded.
#pragma once

#include <cstdint>
#include <span>

#include "weft/model/parameters.h"

namespace weft::model {

// Writes initial values, a function of (seed, parameter, global element), with at most `threads`
// threads. Blocks until they are on the device.
void put_initial_values(tensor::Stream& stream,
                        std::span<const Parameter> parameters,
                        std::uint64_t seed,
                        int threads);

}  // namespace weft::model
