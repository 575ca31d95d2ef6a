// What weights start as: drawn on the host, by several threads, while what is drawn already goes up
// to the device.
#pragma once

#include <cstdint>
#include <span>

#include "weft/model/parameters.h"

namespace weft::model {

// Initial values of all these, a function of (seed, parameter, global element), by at most
// `threads` threads. They are there when it returns.
void put_initial_values(tensor::Stream& stream,
                        std::span<const Parameter> parameters,
                        std::uint64_t seed,
                        int threads);

}  // namespace weft::model
