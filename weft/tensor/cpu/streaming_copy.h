// Non-temporal copy, for large memory that is not read again soon: leaves none of what it writes in
// the caches. A plain copy first reads the destination, a third of its memory traffic. Libraries
// avoid that read only for copies larger than the caches.
#pragma once

#include <cstddef>

namespace weft::tensor::cpu {

// Source and destination do not overlap.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace weft::tensor::cpu
