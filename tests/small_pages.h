// Tests make thousands of small pools, and the first use of a huge page clears 2 MiB.
#pragma once

#include <sys/prctl.h>

namespace weft {

// Applies to this process and its children; without kernel support it has no effect.
inline void use_small_pages() { ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

}  // namespace weft
