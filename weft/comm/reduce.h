// Sums and maxima of several members' elements, in member order whatever the size or the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/comm/communicator.h"

namespace weft::comm {

// Throws InternalError for a dtype that reductions do not take.
void check_reducible(tensor::DType dtype);

// out[i] = sources[0][i] + sources[1][i] + ..., in that order and in that dtype; or their maximum,
// which is NaN where any is. `out` may be one of the sources.
void reduce_in_order(tensor::DType dtype,
                     Reduce reduce,
                     std::byte* out,
                     std::span<const std::byte* const> sources,
                     std::int64_t elements);

}  // namespace weft::comm
