#include "weft/exec/sim/dependencies.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"

namespace weft::exec::sim {

using schedule::kNone;
using schedule::Lane;

namespace {

bool has_only_inline_nodes(const schedule::Graph& graph) {
  return std::ranges::all_of(graph.entries, [](const schedule::Entry& entry) {
    return entry.lane == Lane::Compute || entry.lane == Lane::Host;
  });
}

}  // namespace

Dependencies::Dependencies(const schedule::Graph& graph) {
  struct Edge {
    int from, to;
  };
  std::vector<Edge> edges;
  std::array<int, schedule::kLanes> last;
  last.fill(kNone);
  int hold = kNone;
  const bool all_hold = has_only_inline_nodes(graph);
  const int n = static_cast<int>(graph.entries.size());
  for (int i = 0; i < n; ++i) {
    const schedule::Entry& entry = graph.entries[at(i)];
    int& lane_end = last[static_cast<std::size_t>(entry.lane)];
    lane_before_.push_back(lane_end);
    hold_before_.push_back(hold);
    if (lane_end != kNone) edges.push_back({lane_end, i});
    if (hold != kNone) edges.push_back({hold, i});
    for (const int wait : entry.waits) {
      CHECK(wait >= 0 && wait < i, "entry {} waits for entry {}", i, wait);
      edges.push_back({wait, i});
    }
    lane_end = i;
    if (all_hold || entry.lane == Lane::Host) hold = i;
  }
  // Compressed adjacency lists: count, add up, fill.
  count_.assign(at(n), 0);
  first_.assign(at(n) + 1, 0);
  followers_.resize(edges.size());
  for (const Edge& edge : edges) {
    ++count_[at(edge.to)];
    ++first_[at(edge.from) + 1];
  }
  for (int i = 0; i < n; ++i) first_[at(i) + 1] += first_[at(i)];
  std::vector<int> next = first_;
  for (const Edge& edge : edges) followers_[at(next[at(edge.from)]++)] = edge.to;
}

}  // namespace weft::exec::sim
