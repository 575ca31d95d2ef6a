// Which nodes of different ranks are one operation.
#pragma once

#include "weft/schedule/graph.h"

namespace weft::schedule {

// The name under which ranks meet. A collective has the same name on all of its members; what
// `c1F3.receive` receives is `c0F3.send`, and `c0D3.receive` is `c1D3.send`.
Node meeting_of(const Node& node);

// Whether an entry takes part in an operation with other ranks.
bool is_meeting(const Entry& entry);

}  // namespace weft::schedule
