#include "weft/trace/exposure/waits.h"

#include <algorithm>

namespace weft::trace {

Waits::Waits(std::span<const Timeline> timelines, Clocks clocks) : operations_(timelines, clocks) {
  for (const Timeline& timeline : timelines) {
    Ends& ends = ends_[timeline.rank];
    ranks_.insert(timeline.rank);
    for (const Span& span : timeline.spans) {
      if (is_node(span) && span.members.size() > 1) {
        began_[{span.run, span.operation, span.members}].insert(timeline.rank);
      }
      if (span.kind == SpanKind::Node) ends.insert_or_assign({span.run, span.name}, span.end_ns);
    }
  }
}

bool Waits::Before::operator()(const Key& a, const Key& b) const {
  const auto& [run_a, name_a, members_a] = a;
  const auto& [run_b, name_b, members_b] = b;
  if (run_a != run_b) return run_a < run_b;
  if (name_a != name_b) return name_a < name_b;
  return std::ranges::lexicographical_compare(members_a, members_b);
}

bool Waits::is_met(const Span& node) const {
  const auto began = began_.find({node.run, node.operation, node.members});
  if (began == began_.end()) return true;
  return std::ranges::all_of(node.members, [&](int rank) {
    return !ranks_.contains(rank) || began->second.contains(rank);
  });
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
    until = is_met(node) ? operations_.waited_until(node) : node.end_ns;
  }
  return std::clamp<std::int64_t>(until - node.begin_ns, 0, node.end_ns - node.begin_ns);
}

}  // namespace weft::trace
