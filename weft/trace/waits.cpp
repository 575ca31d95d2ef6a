#include "weft/trace/waits.h"

#include <algorithm>

namespace weft::trace {

Waits::Waits(std::span<const Timeline> timelines, Clocks clocks) : operations_(timelines, clocks) {
  for (const Timeline& timeline : timelines) {
    Ends& ends = ends_[timeline.rank];
    for (const Span& span : timeline.spans) {
      if (span.kind == SpanKind::Node) ends.insert_or_assign({span.run, span.name}, span.end_ns);
    }
  }
}

std::int64_t Waits::waited_ns(const Timeline& rank, const Span& node) const {
  if (!is_node(node)) return 0;
  std::int64_t until = node.begin_ns;
  if (node.kind == SpanKind::Host) {
    const auto ends = ends_.find(rank.rank);
    for (const std::string& name : node.after) {
      if (ends == ends_.end()) break;
      const auto found = ends->second.find({node.run, name});
      if (found != ends->second.end()) until = std::max(until, found->second);
    }
  } else if (!communication_kind(node.lane).empty()) {
    until = operations_.waited_until(node);
  }
  return std::clamp<std::int64_t>(until - node.begin_ns, 0, node.end_ns - node.begin_ns);
}

}  // namespace weft::trace
