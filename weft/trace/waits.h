// How long a node waited before it did anything: for its peers, or, on the host, for other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "weft/trace/operations.h"
#include "weft/trace/span.h"

namespace weft::trace {

class Waits {
 public:
  // The timelines outlive it.
  Waits(std::span<const Timeline> timelines, Clocks clocks);

  // Of a node of this rank: from its begin; 0 for compute, which waits before it begins. All of a
  // communication that one of its ranks has not begun when the timelines end.
  std::int64_t waited_ns(const Timeline& rank, const Span& node) const;

 private:
  // When the nodes of a rank were over, by run and name.
  using Ends = std::map<std::pair<int, std::string_view>, std::int64_t>;

  using Key = std::tuple<int, std::string_view, std::span<const int>>;
  struct Before {
    bool operator()(const Key& a, const Key& b) const;
  };

  bool is_met(const Span& node) const;

  Operations operations_;
  std::set<int> ranks_;
  std::map<Key, std::set<int>, Before> began_;  // by run, operation and members: ranks that did
  std::map<int, Ends> ends_;                    // by rank
};

}  // namespace weft::trace
