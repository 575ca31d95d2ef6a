#include "weft/plan/hardware/waking.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/median.h"

namespace weft::plan {
namespace {

using trace::Span;

// One rank's node spans by begin.
std::vector<const Span*> nodes_by_begin(const trace::Timeline& timeline) {
  std::vector<const Span*> nodes;
  for (const Span& span : timeline.spans) {
    if (trace::is_node(span)) nodes.push_back(&span);
  }
  std::ranges::sort(nodes, {}, &Span::begin_ns);
  return nodes;
}

}  // namespace

double waking_seconds(const std::vector<trace::Timeline>& timelines) {
  std::vector<double> seconds;
  for (const trace::Timeline& timeline : timelines) {
    const std::vector<const Span*> nodes = nodes_by_begin(timeline);
    std::map<std::pair<int, std::string>, std::int64_t> ends;  // by run and node
    for (const Span* span : nodes) {
      std::int64_t& end = ends[{span->run, span->node}];
      end = std::max(end, span->end_ns);
    }
    std::map<std::string, std::int64_t> lane_ends;
    for (const Span* span : nodes) {
      std::int64_t& before = lane_ends[span->lane];
      std::int64_t waited = 0;
      for (const std::string& node : span->after) {
        const auto found = ends.find({span->run, node});
        if (found != ends.end()) waited = std::max(waited, found->second);
      }
      const bool was_held = waited > before && waited <= span->begin_ns;
      if (was_held && span->kind != trace::SpanKind::Host) {
        seconds.push_back(base::number(span->begin_ns - waited) * 1e-9);
      }
      before = std::max(before, span->end_ns);
    }
  }
  return seconds.empty() ? 0 : base::median(std::move(seconds));
}

}  // namespace weft::plan
