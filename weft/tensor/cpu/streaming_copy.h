// A copy that leaves nothing of what it wrote in the caches: for much memory that nobody reads
// soon. A plain copy reads what it is about to write over first, a third of what then goes to and
// from memory; libraries leave that out only in copies larger than the caches.
#pragma once

#include <cstddef>

namespace weft::tensor::cpu {

// The two do not overlap.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace weft::tensor::cpu
