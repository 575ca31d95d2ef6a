// Split of a step into layers and the rest: embedding, head and optimizer.
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::trace {

// Times of one rank's step: means over the traced runs and the ranks.
struct StepParts {
  // Time with work outside the layers only: no work of a layer is in flight on any device lane. The
  // host may wait for the next layer's row counts meanwhile.
  double apart_ms = 0;
  // Time in which the compute lane ran work outside the layers, whatever ran beside it.
  double compute_apart_ms = 0;
};

StepParts step_parts(std::span<const Timeline> timelines);

}  // namespace weft::trace
