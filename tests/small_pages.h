// Tests make thousands of small pools, and the first use of a huge page clears 2 MiB.
#pragma once

#include <sys/prctl.h>

namespace weft {

// For this process and those that it starts; a kernel that cannot do it changes nothing.
inline void use_small_pages() { ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

}  // namespace weft
