// Explanation of a deadlocked step.
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

// Chain of waits from an incomplete entry: a cycle, or up to a rank that lacks an operation.
// `is_over` is true for complete entries; at least one entry is incomplete.
std::string name_standstill(const SimulatedStep& step,
                            const std::vector<const Dependencies*>& dependencies,
                            const Operations& operations,
                            const std::function<bool(Place)>& is_over);

}  // namespace weft::exec::sim
