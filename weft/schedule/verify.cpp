#include "weft/schedule/verify.h"

#include <algorithm>
#include <map>
#include <queue>

#include "weft/base/text.h"

namespace weft::schedule {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

// Index of every node, with complaints about missing, doubled and foreign ones.
std::map<Node, int> index_nodes(const Graph& graph,
                                const std::vector<Node>& wanted,
                                std::vector<std::string>& complaints) {
  std::map<Node, int> index;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    if (!index.emplace(node, static_cast<int>(i)).second) {
      complaints.push_back(base::text("{} is issued twice", print(node)));
    }
  }
  std::map<Node, int> expected;
  for (const Node& node : wanted) {
    expected.emplace(node, 0);
    if (!index.contains(node)) complaints.push_back(base::text("{} is missing", print(node)));
  }
  for (const auto& [node, at_entry] : index) {
    if (!expected.contains(node)) {
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
                        Pass pass,
                        const std::map<Node, int>& index,
                        std::vector<std::string>& complaints) {
  const Order order(graph);
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    for (const Node& need : required(anatomy, node, micro_batches, pass)) {
      const auto found = index.find(need);
      if (found == index.end()) continue;  // already reported as missing
      const bool ordered =
          at(found->second) < i && order.before(found->second, static_cast<int>(i));
      if (!ordered) {
        complaints.push_back(
            base::text("{} may start before {} is over", print(node), print(need)));
      }
    }
  }
}

// The union graph: one vertex an entry, entries of one collective sharing a vertex.
class Union {
 public:
  Union(const std::vector<const Graph*>& graphs, const MembersOf& members) : graphs_(graphs) {
    vertex_.resize(graphs.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      const std::vector<Entry>& entries = graphs[rank]->entries;
      std::array<std::vector<int>, kLanes> group;
      for (int lane = 0; lane < kLanes; ++lane) {
        if (is_collective(static_cast<Lane>(lane))) {
          group[at(lane)] = members(static_cast<int>(rank), static_cast<Lane>(lane));
        }
      }
      for (const Entry& entry : entries) vertex_[rank].push_back(vertex_for(rank, entry, group));
    }
    edges_.resize(names_.size());
    incoming_.resize(names_.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) connect(rank);
  }

  // The circle in which vertices wait for each other, or nothing.
  std::vector<std::string> find_cycle() {
    std::queue<int> ready;
    for (std::size_t v = 0; v < names_.size(); ++v) {
      if (incoming_[v] == 0) ready.push(static_cast<int>(v));
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const int v = ready.front();
      ready.pop();
      ++done;
      for (const int next : edges_[at(v)]) {
        if (--incoming_[at(next)] == 0) ready.push(next);
      }
    }
    if (done == names_.size()) return {};
    return {base::text("the ranks wait for each other in a circle: {}",
                       fmt::join(name_circle(), " waits for "))};
  }

 private:
  int vertex_for(std::size_t rank,
                 const Entry& entry,
                 const std::array<std::vector<int>, kLanes>& group) {
    if (!is_collective(entry.lane)) {
      names_.push_back(base::text("{} on rank {}", print(entry.node), rank));
      return static_cast<int>(names_.size()) - 1;
    }
    const auto [found, is_new] =
        collectives_.try_emplace({group[static_cast<std::size_t>(entry.lane)], entry.node},
                                 static_cast<int>(names_.size()));
    if (is_new) names_.push_back(print(entry.node));
    return found->second;
  }

  // What never becomes ready waits for something else that never does, so that going back from one
  // to the next ends in a circle.
  std::vector<std::string> name_circle() const {
    std::vector<int> blocked_by(names_.size(), -1);
    int v = -1;
    for (std::size_t from = 0; from < names_.size(); ++from) {
      if (incoming_[from] == 0) continue;
      for (const int to : edges_[from]) blocked_by[at(to)] = static_cast<int>(from);
      v = static_cast<int>(from);
    }
    for (std::size_t steps = 0; steps < names_.size(); ++steps) v = blocked_by[at(v)];
    const int first = v;
    std::vector<std::string> names{names_[at(first)]};
    do {
      v = blocked_by[at(v)];
      names.push_back(names_[at(v)]);
    } while (v != first);
    return names;
  }

  void connect(std::size_t rank) {
    std::array<int, kLanes> last;
    last.fill(-1);
    const std::vector<Entry>& entries = graphs_[rank]->entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto lane = static_cast<std::size_t>(entries[i].lane);
      const int host = last[static_cast<std::size_t>(Lane::Host)];
      if (last[lane] >= 0) edge(rank, last[lane], static_cast<int>(i));
      if (host >= 0) edge(rank, host, static_cast<int>(i));
      for (const int wait : entries[i].waits) edge(rank, wait, static_cast<int>(i));
      last[lane] = static_cast<int>(i);
    }
  }

  void edge(std::size_t rank, int from, int to) {
    const int a = vertex_[rank][at(from)], b = vertex_[rank][at(to)];
    edges_[at(a)].push_back(b);
    ++incoming_[at(b)];
  }

  const std::vector<const Graph*>& graphs_;
  std::vector<std::vector<int>> vertex_;
  std::map<std::pair<std::vector<int>, Node>, int> collectives_;
  std::vector<std::string> names_;
  std::vector<std::vector<int>> edges_;
  std::vector<int> incoming_;
};

std::vector<Node> collectives_of(const Graph& graph, Lane lane) {
  std::vector<Node> nodes;
  for (const Entry& entry : graph.entries) {
    if (entry.lane == lane) nodes.push_back(entry.node);
  }
  return nodes;
}

// Where two members' orders of collectives part, if they do.
std::vector<std::string> compare_orders(const std::vector<const Graph*>& graphs,
                                        int rank,
                                        int peer,
                                        Lane lane) {
  const std::vector<Node> mine = collectives_of(*graphs[at(rank)], lane);
  const std::vector<Node> theirs = collectives_of(*graphs[at(peer)], lane);
  const std::size_t shared = std::min(mine.size(), theirs.size());
  const auto name = [](const std::vector<Node>& nodes, std::size_t i) {
    return i < nodes.size() ? print(nodes[i]) : std::string("nothing");
  };
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i < shared && mine[i] == theirs[i]) continue;
    return {base::text("lane {}: operation {} is {} on rank {} and {} on rank {}",
                       word(lane),
                       i,
                       name(mine, i),
                       rank,
                       name(theirs, i),
                       peer)};
  }
  return {};
}

}  // namespace

std::vector<std::string> verify(const Graph& graph,
                                const Anatomy& anatomy,
                                int micro_batches,
                                Pass pass) {
  std::vector<std::string> complaints = check_waits(graph);
  if (!complaints.empty()) return complaints;
  const std::map<Node, int> index =
      index_nodes(graph, all_nodes(anatomy, micro_batches, pass), complaints);
  if (!complaints.empty()) return complaints;
  check_lanes(graph, anatomy, complaints);
  check_dependencies(graph, anatomy, micro_batches, pass, index, complaints);
  return complaints;
}

std::vector<std::string> verify_union(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members) {
  std::vector<std::string> complaints;
  for (int rank = 0; at(rank) < graphs.size(); ++rank) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!is_collective(static_cast<Lane>(lane))) continue;
      const std::vector<int> group = members(rank, static_cast<Lane>(lane));
      if (group.empty() || group.front() == rank) continue;
      for (std::string& complaint :
           compare_orders(graphs, group.front(), rank, static_cast<Lane>(lane))) {
        complaints.push_back(std::move(complaint));
      }
    }
  }
  if (!complaints.empty()) return complaints;
  return Union(graphs, members).find_cycle();
}

}  // namespace weft::schedule
