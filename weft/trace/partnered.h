// The communication of layers that has a partner: that compute may run beside, by the order of the
// graph. What is reduced and gathered for the optimizer is of no layer.
#pragma once

#include <span>

#include "weft/trace/span.h"

namespace weft::trace {

// As in exposure.h, of the nodes that are coverable alone.
struct Partnered {
  double communication_ms = 0;
  double hidden_any = 0, hidden_gemm = 0;  // shares of it; 0 where it is 0
};

Partnered partnered(std::span<const Timeline> timelines);

}  // namespace weft::trace
