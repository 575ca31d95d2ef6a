// Gathers the timelines of all ranks on rank 0.
#pragma once

#include <vector>

#include "weft/trace/exposure/exposure.h"
#include "weft/train/engine.h"

namespace weft::train {

struct GatheredTimelines {
  std::vector<trace::Timeline> timelines;          // in rank order; on rank 0 only
  trace::Clocks clocks = trace::Clocks::Separate;  // on every rank
};

// Every rank calls it.
GatheredTimelines gather_timelines(Engine& engine, const trace::Timeline& own);

}  // namespace weft::train
