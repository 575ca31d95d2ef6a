// Time that a node waited before it did anything: for its peers or, on the host, for other nodes.
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
  // The timelines must outlive this object.
  Waits(std::span<const Timeline> timelines, Clocks clocks);

  // Wait of a node of this rank, from its begin; 0 for compute, which waits before it begins. A
  // communication that some rank has not begun by the end of the timelines waited throughout.
  std::int64_t waited_ns(const Timeline& rank, const Span& node) const;

 private:
  // Ends of a rank's nodes, by run and name.
  using Ends = std::map<std::pair<int, std::string_view>, std::int64_t>;

  using Key = std::tuple<int, std::string_view, std::span<const int>>;
  struct Before {
    bool operator()(const Key& a, const Key& b) const;
  };

  bool is_met(const Span& node) const;

  Operations operations_;
  std::set<int> ranks_;
  // ranks that began it, by run, operation and members
  std::map<Key, std::set<int>, Before> began_;
  std::map<int, Ends> ends_;  // by rank
};

}  // namespace weft::trace
