// Why a step cannot go on.
#pragma once

#include <functional>
#include <string>

#include "weft/exec/sim/dependencies.h"
#include "weft/exec/sim/operations.h"

namespace weft::exec::sim {

struct Place {
  int rank = 0;
  int entry = 0;

  bool operator==(const Place&) const = default;
};

// Who waits for whom, from an entry that is not over: in a circle, or up to a rank that lacks an
// operation. `is_over` tells whether an entry is; at least one is not.
std::string name_standstill(const SimulatedStep& step,
                            const std::vector<const Dependencies*>& dependencies,
                            const Operations& operations,
                            const std::function<bool(Place)>& is_over);

}  // namespace weft::exec::sim
