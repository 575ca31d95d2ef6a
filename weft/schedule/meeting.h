// Nodes of different ranks that belong to one operation.
#pragma once

#include "weft/schedule/graph.h"

namespace weft::schedule {

// Common name of an operation on all its ranks. A collective has the same name on all members; the
// name of `c1F3.receive` is `c0F3.send`, that of `c0D3.receive` is `c1D3.send`.
Node meeting_of(const Node& node);

// True if an entry is part of an operation with other ranks.
bool is_meeting(const Entry& entry);

}  // namespace weft::schedule
