// What of a step is the layers' and what is embedding, head and optimizer.
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::trace {

// Of a step of one rank: means over the traced runs and the ranks.
struct StepParts {
  // In which only work of no layer ran: nothing of a layer was under way, on any lane of the
  // device. The host may wait for the next layer's row counts meanwhile.
  double apart_ms = 0;
  // In which the compute lane did work of no layer, whatever ran beside it.
  double compute_apart_ms = 0;
};

StepParts step_parts(std::span<const Timeline> timelines);

}  // namespace weft::trace
