// Communication of layers with a partner: by the order of the graph, compute may run beside it.
// Collectives of the optimizer belong to no layer.
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::trace {

// Values as in exposure.h, over coverable nodes only.
struct Partnered {
  double communication_ms = 0;
  double hidden_any = 0, hidden_gemm = 0;  // shares of communication_ms; 0 if it is 0
};

Partnered partnered(std::span<const Timeline> timelines);

}  // namespace weft::trace
