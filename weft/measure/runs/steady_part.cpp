#include "weft/measure/runs/steady_part.h"

#include <algorithm>
#include <limits>
#include <map>

#include "weft/schedule/node.h"

namespace weft::measure {
namespace {

// First backward and last forward in one run of one rank.
struct Edges {
  std::int64_t first_backward = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_forward = std::numeric_limits<std::int64_t>::min();

  void add(const trace::Span& span) {
    switch (schedule::parse_node(span.node).direction) {
      case schedule::Direction::F:
        last_forward = std::max(last_forward, span.end_ns);
        break;
      case schedule::Direction::D:
        first_backward = std::min(first_backward, span.begin_ns);
        break;
      case schedule::Direction::R:
      case schedule::Direction::W:
      case schedule::Direction::O:
      case schedule::Direction::I:
      case schedule::Direction::None:
        break;
    }
  }
  double seconds() const {
    if (last_forward < first_backward) return 0;
    return static_cast<double>(last_forward - first_backward) * 1e-9;
  }
};

}  // namespace

double steady_seconds(std::span<const trace::Timeline> timelines) {
  std::map<int, double> runs;  // sums over the ranks
  for (const trace::Timeline& timeline : timelines) {
    std::map<int, Edges> edges;
    for (const trace::Span& span : timeline.spans) {
      if (!trace::is_node(span) && span.lane == trace::kComputeLane) edges[span.run].add(span);
    }
    for (const auto& [run, edge] : edges) runs[run] += edge.seconds();
  }
  if (runs.empty()) return 0;
  const double shortest =
      std::ranges::min_element(runs, {}, [](const auto& run) { return run.second; })->second;
  return shortest / static_cast<double>(timelines.size());
}

}  // namespace weft::measure
