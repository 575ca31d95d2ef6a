// How long a node waited before it did anything: for its peers, or, on the host, for other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "weft/trace/operations.h"
#include "weft/trace/span.h"

namespace weft::trace {

class Waits {
 public:
  // The timelines outlive it.
  Waits(std::span<const Timeline> timelines, Clocks clocks);

  // Of a node of this rank: from its begin; 0 for compute, which waits before it begins.
  std::int64_t waited_ns(const Timeline& rank, const Span& node) const;

 private:
  // When the nodes of a rank were over, by run and name.
  using Ends = std::map<std::pair<int, std::string_view>, std::int64_t>;

  Operations operations_;
  std::map<int, Ends> ends_;  // by rank
};

}  // namespace weft::trace
