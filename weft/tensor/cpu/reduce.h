// Sums and maxima of several members' elements, always in member order, whatever the size or the
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/tensor/transfers.h"

namespace weft::tensor::cpu {

// Transfers::reduce on memory that this process can address.
void reduce_in_order(DType dtype,
                     Reduce reduce,
                     std::byte* out,
                     std::span<const std::byte* const> sources,
                     std::int64_t elements);

}  // namespace weft::tensor::cpu
