#include "weft/trace/operations.h"

#include <algorithm>

namespace weft::trace {
namespace {

// Nodes without peers are operations by themselves.
bool has_peers(const Span& span) {
  return is_node(span) && !span.operation.empty() && span.members.size() > 1;
}

}  // namespace

Operations::Operations(std::span<const Timeline> timelines, Clocks clocks) : clocks_(clocks) {
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) {
      if (!has_peers(span)) continue;
      const std::int64_t duration = span.end_ns - span.begin_ns;
      const auto [found, is_new] =
          seen_.try_emplace(key_of(span), Seen{.last_begin = span.begin_ns, .shortest = duration});
      Seen& seen = found->second;
      seen.last_begin = std::max(seen.last_begin, span.begin_ns);
      seen.shortest = std::min(seen.shortest, duration);
    }
  }
}

std::int64_t Operations::waited_until(const Span& node) const {
  const auto found = has_peers(node) ? seen_.find(key_of(node)) : seen_.end();
  if (found == seen_.end()) return node.begin_ns;
  const Seen& seen = found->second;
  // An operation may end on this rank before the last rank begins it (a broadcast's root).
  const std::int64_t until =
      clocks_ == Clocks::Shared ? seen.last_begin : node.end_ns - seen.shortest;
  return std::min(until, node.end_ns);
}

}  // namespace weft::trace
