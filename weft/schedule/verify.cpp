#include "weft/schedule/verify.h"

#include <algorithm>
#include <optional>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/schedule/node_index.h"

namespace weft::schedule {
namespace {

using base::at;

std::vector<std::string> check_waits(const Graph& graph) {
  std::vector<std::string> complaints;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    for (const int wait : graph.entries[i].waits) {
      if (wait >= 0 && at(wait) < i) continue;
      complaints.push_back(
          base::text("{} waits for entry {}, which is not issued before it (entry {})",
                     print(graph.entries[i].node),
                     wait,
                     i));
    }
  }
  return complaints;
}

// Index of every node, with complaints about missing, repeated and unknown ones.
NodeIndex index_nodes(const Graph& graph,
                      const std::vector<Node>& wanted,
                      std::vector<std::string>& complaints) {
  NodeIndex index;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    if (!index.add(node, static_cast<int>(i))) {
      complaints.push_back(base::text("{} is issued twice", print(node)));
    }
  }
  NodeIndex expected;
  for (const Node& node : wanted) {
    expected.add(node, 0);
    if (!index.contains(node)) complaints.push_back(base::text("{} is missing", print(node)));
  }
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    if (index.find(node) == static_cast<int>(i) && !expected.contains(node)) {
      complaints.push_back(base::text("{} does not belong to this step", print(node)));
    }
  }
  return index;
}

void check_lanes(const Graph& graph, const Anatomy& anatomy, std::vector<std::string>& complaints) {
  for (const Entry& entry : graph.entries) {
    const Lane lane = lane_of(anatomy, entry.node);
    if (entry.lane == lane) continue;
    complaints.push_back(base::text("{} is on lane {}, but its lane is {}",
                                    print(entry.node),
                                    word(entry.lane),
                                    word(lane)));
  }
}

void check_dependencies(const Graph& graph,
                        const Anatomy& anatomy,
                        int micro_batches,
                        StepKind kind,
                        const NodeIndex& index,
                        std::vector<std::string>& complaints) {
  const Order order(graph);
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    for (const Node& need : required(anatomy, node, micro_batches, kind)) {
      const std::optional<int> found = index.find(need);
      if (!found) continue;  // already reported as missing
      const bool ordered = at(*found) < i && order.before(*found, static_cast<int>(i));
      if (!ordered) {
        complaints.push_back(
            base::text("{} may start before {} is over", print(node), print(need)));
      }
    }
  }
}

}  // namespace

std::vector<std::string> verify(const Graph& graph,
                                const Anatomy& anatomy,
                                int micro_batches,
                                StepKind kind) {
  std::vector<std::string> complaints = check_waits(graph);
  if (!complaints.empty()) return complaints;
  const NodeIndex index = index_nodes(graph, all_nodes(anatomy, micro_batches, kind), complaints);
  if (!complaints.empty()) return complaints;
  check_lanes(graph, anatomy, complaints);
  check_dependencies(graph, anatomy, micro_batches, kind, index, complaints);
  return complaints;
}

}  // namespace weft::schedule
