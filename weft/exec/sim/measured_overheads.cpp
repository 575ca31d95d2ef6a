#include "weft/exec/sim/measured_overheads.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft::exec::sim {
namespace {

using trace::Span;

// A node on one lane, from its first operation to its last.
struct TracedNode {
  const Span* span = nullptr;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t worked_ns = 0;  // spent in its operations
};

// By run and lane; nodes without operations are left out.
using TracedLanes = std::map<std::pair<int, std::string>, std::vector<TracedNode>>;

TracedLanes lanes_of(const trace::Timeline& timeline) {
  std::map<std::pair<int, std::string>, TracedNode> nodes;  // by run and node
  for (const Span& span : timeline.spans) {
    if (span.kind == trace::SpanKind::Node) nodes[{span.run, span.node}].span = &span;
  }
  for (const Span& span : timeline.spans) {
    if (trace::is_node(span)) continue;
    const auto found = nodes.find({span.run, span.node});
    if (found == nodes.end() || found->second.span->lane != span.lane) continue;
    TracedNode& node = found->second;
    const bool is_first = node.end_ns == 0;
    node.begin_ns = is_first ? span.begin_ns : std::min(node.begin_ns, span.begin_ns);
    node.end_ns = std::max(node.end_ns, span.end_ns);
    node.worked_ns += span.end_ns - span.begin_ns;
  }
  TracedLanes lanes;
  for (const auto& [key, node] : nodes) {
    if (node.end_ns > 0) lanes[{key.first, node.span->lane}].push_back(node);
  }
  for (auto& [key, lane] : lanes) std::ranges::sort(lane, {}, &TracedNode::begin_ns);
  return lanes;
}

class Mean {
 public:
  void add(std::int64_t ns) {
    sum_ns_ += std::max<std::int64_t>(ns, 0);
    ++count_;
  }
  double seconds() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_ns_) * 1e-9 / static_cast<double>(count_);
  }

 private:
  std::int64_t sum_ns_ = 0, count_ = 0;
};

}  // namespace

Overheads measure_overheads(std::span<const trace::Timeline> timelines) {
  Mean wake, behind, inside;
  for (const trace::Timeline& timeline : timelines) {
    // by run and name: ends of all nodes, including host nodes
    std::map<std::pair<int, std::string>, std::int64_t> ends;
    for (const Span& span : timeline.spans) {
      if (trace::is_node(span)) ends[{span.run, span.node}] = span.end_ns;
    }
    for (const auto& [key, lane] : lanes_of(timeline)) {
      const bool computes = key.second == trace::kComputeLane;
      for (std::size_t i = 1; i < lane.size(); ++i) {
        std::int64_t waited_ns = 0;
        for (const std::string& node : lane[i].span->after) {
          const auto end = ends.find({key.first, node});
          if (end != ends.end()) waited_ns = std::max(waited_ns, end->second);
        }
        const std::int64_t free_ns = lane[i - 1].end_ns;
        if (waited_ns > free_ns) {
          wake.add(lane[i].begin_ns - waited_ns);
        } else if (computes) {
          behind.add(lane[i].begin_ns - free_ns);
        }
        if (computes) inside.add(lane[i].end_ns - lane[i].begin_ns - lane[i].worked_ns);
      }
    }
  }
  return {.wake_seconds = wake.seconds(), .next_seconds = behind.seconds() + inside.seconds()};
}

}  // namespace weft::exec::sim
