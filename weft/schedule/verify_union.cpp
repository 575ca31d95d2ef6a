#include <algorithm>
#include <array>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/piece_table.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace {

using base::at;

// Operations that must have one order on all members: those of a lane and its members, or of one
// pipeline direction between two ranks.
struct Channel {
  Lane lane = Lane::Ep;  // sender's lane
  std::vector<int> members;

  auto operator<=>(const Channel&) const = default;
};

Lane sending_lane(Lane lane) {
  if (lane == Lane::PpReceivePrevious) return Lane::PpSendNext;
  return lane == Lane::PpReceiveNext ? Lane::PpSendPrevious : lane;
}

// Channels of all ranks, numbered, with every rank's operations in them.
class Channels {
 public:
  Channels(const std::vector<const Graph*>& graphs, const MembersOf& members) {
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      std::vector<int>& numbers = of_entry_.emplace_back();
      for (const Entry& entry : graphs[rank]->entries) {
        numbers.push_back(-1);
        if (!is_meeting(entry)) continue;
        Channel channel{.lane = sending_lane(entry.lane),
                        .members = members(static_cast<int>(rank), entry)};
        const auto [found, is_new] =
            numbers_.try_emplace(std::move(channel), static_cast<int>(numbers_.size()));
        if (is_new) operations_.emplace_back();
        numbers.back() = found->second;
        operations_[at(found->second)][static_cast<int>(rank)].push_back(entry.node);
      }
    }
  }

  int of(std::size_t rank, std::size_t entry) const { return of_entry_[rank][entry]; }

  // First difference between two members' orders, if any.
  std::vector<std::string> compare() const {
    std::vector<std::string> complaints;
    for (const auto& [channel, number] : numbers_) {
      const std::map<int, std::vector<Node>>& by_rank = operations_[at(number)];
      const int first = channel.members.front();
      for (const int member : channel.members) {
        if (member == first) continue;
        const std::string complaint =
            compare(channel, first, of_rank(by_rank, first), member, of_rank(by_rank, member));
        if (!complaint.empty()) complaints.push_back(complaint);
      }
    }
    return complaints;
  }

 private:
  static const std::vector<Node>& of_rank(const std::map<int, std::vector<Node>>& by_rank,
                                          int rank) {
    static const std::vector<Node> kNothing;
    const auto found = by_rank.find(rank);
    return found == by_rank.end() ? kNothing : found->second;
  }

  static std::string compare(const Channel& channel,
                             int rank,
                             const std::vector<Node>& mine,
                             int peer,
                             const std::vector<Node>& theirs) {
    const auto name = [](const std::vector<Node>& nodes, std::size_t i) {
      return i < nodes.size() ? print(nodes[i]) : std::string("nothing");
    };
    for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
      const bool both = i < mine.size() && i < theirs.size();
      if (both && meeting_of(mine[i]) == meeting_of(theirs[i])) continue;
      return base::text("lane {}: operation {} is {} on rank {} and {} on rank {}",
                        word(channel.lane),
                        i,
                        name(mine, i),
                        rank,
                        name(theirs, i),
                        peer);
    }
    return "";
  }

  std::map<Channel, int> numbers_;
  std::vector<std::map<int, std::vector<Node>>> operations_;  // by channel and rank
  std::vector<std::vector<int>> of_entry_;                    // by rank and entry; -1: local
};

// Order relation. Ends: what must have ended before, by lanes and waits. Calls: the collective that
// a rank calls before, on any lane.
enum class After { Ends, Calls };

// Graph of entries; the entries of one operation share a vertex.
class Union {
 public:
  Union(const std::vector<const Graph*>& graphs, const Channels& channels, After after)
      : graphs_(graphs) {
    vertex_.resize(graphs.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      for (std::size_t i = 0; i < graphs[rank]->entries.size(); ++i) {
        vertex_[rank].push_back(vertex_for(rank, i, channels.of(rank, i)));
      }
    }
    edges_.resize(owners_.size());
    incoming_.resize(owners_.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      after == After::Ends ? connect(rank) : connect_calls(rank, channels);
    }
  }

  // See verify.h; the graph has no cycle.
  SendsOver sends_over(std::size_t rank) const {
    const std::vector<Entry>& entries = graphs_[rank]->entries;
    // By vertex and sending lane: the last entry of this rank that has ended before.
    constexpr std::array kSending{Lane::PpSendNext, Lane::PpSendPrevious};
    std::vector<std::array<int, kSending.size()>> before(owners_.size(), {-1, -1}), own = before;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      for (std::size_t lane = 0; lane < kSending.size(); ++lane) {
        if (entries[i].lane == kSending[lane]) {
          own[at(vertex_[rank][i])][lane] = static_cast<int>(i);
        }
      }
    }
    for (const int v : in_order()) {
      for (const int next : edges_[at(v)]) {
        for (std::size_t lane = 0; lane < kSending.size(); ++lane) {
          int& known = before[at(next)][lane];
          known = std::max({known, before[at(v)][lane], own[at(v)][lane]});
        }
      }
    }
    SendsOver over(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (sending_lane(entries[i].lane) == entries[i].lane) continue;  // not a receive
      for (const int send : before[at(vertex_[rank][i])]) {
        if (send >= 0) over[i].push_back(send);
      }
    }
    return over;
  }

  // Cycle of vertices that wait for each other; empty: none.
  std::vector<std::string> find_cycle() {
    std::vector<int> missing = incoming_;
    if (in_order(missing).size() == owners_.size()) return {};
    incoming_ = missing;
    return {base::text("the ranks wait for each other in a circle: {}",
                       fmt::join(name_circle(), " waits for "))};
  }

 private:
  // First entry of a vertex, which names it.
  struct Owner {
    std::size_t rank = 0, entry = 0;
  };

  std::vector<int> in_order() const {
    std::vector<int> missing = incoming_;
    return in_order(missing);
  }

  // Vertices in topological order, without those in or behind a cycle; `missing` becomes the number
  // of open predecessors of each.
  std::vector<int> in_order(std::vector<int>& missing) const {
    std::vector<int> order;
    for (std::size_t v = 0; v < owners_.size(); ++v) {
      if (missing[v] == 0) order.push_back(static_cast<int>(v));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const int next : edges_[at(order[i])]) {
        if (--missing[at(next)] == 0) order.push_back(next);
      }
    }
    return order;
  }

  int vertex_for(std::size_t rank, std::size_t entry, int channel) {
    const int next = static_cast<int>(owners_.size());
    if (channel >= 0) {
      const Node meeting = meeting_of(graphs_[rank]->entries[entry].node);
      const auto [found, is_new] = operations_.try_emplace({channel, meeting}, next);
      if (!is_new) return found->second;
    }
    owners_.push_back({.rank = rank, .entry = entry});
    return next;
  }

  std::string name(int vertex) const {
    const Owner& owner = owners_[at(vertex)];
    const Entry& entry = graphs_[owner.rank]->entries[owner.entry];
    if (is_meeting(entry) && !is_exchange(entry.node)) return print(entry.node);
    return base::text("{} on rank {}", print(entry.node), owner.rank);
  }

  // A vertex that never becomes ready waits for another such vertex, so following these waits
  // backwards ends in a cycle.
  std::vector<std::string> name_circle() const {
    std::vector<int> blocked_by(owners_.size(), -1);
    int v = -1;
    for (std::size_t from = 0; from < owners_.size(); ++from) {
      if (incoming_[from] == 0) continue;
      for (const int to : edges_[from]) blocked_by[at(to)] = static_cast<int>(from);
      v = static_cast<int>(from);
    }
    for (std::size_t steps = 0; steps < owners_.size(); ++steps) v = blocked_by[at(v)];
    const int first = v;
    std::vector<std::string> names{name(first)};
    do {
      v = blocked_by[at(v)];
      names.push_back(name(v));
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

  void connect_calls(std::size_t rank, const Channels& channels) {
    int last = -1;
    for (std::size_t i = 0; i < graphs_[rank]->entries.size(); ++i) {
      if (channels.of(rank, i) < 0 || is_exchange(graphs_[rank]->entries[i].node)) continue;
      if (last >= 0) edge(rank, last, static_cast<int>(i));
      last = static_cast<int>(i);
    }
  }

  void edge(std::size_t rank, int from, int to) {
    const int a = vertex_[rank][at(from)], b = vertex_[rank][at(to)];
    edges_[at(a)].push_back(b);
    ++incoming_[at(b)];
  }

  const std::vector<const Graph*>& graphs_;
  std::vector<std::vector<int>> vertex_;
  std::map<std::pair<int, Node>, int> operations_;
  std::vector<Owner> owners_;
  std::vector<std::vector<int>> edges_;
  std::vector<int> incoming_;
};

}  // namespace

std::vector<std::string> verify_union(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members) {
  const Channels channels(graphs, members);
  std::vector<std::string> complaints = channels.compare();
  if (!complaints.empty()) return complaints;
  return Union(graphs, channels, After::Ends).find_cycle();
}

SendsOver sends_over(const std::vector<const Graph*>& graphs, const MembersOf& members, int rank) {
  return Union(graphs, Channels(graphs, members), After::Ends).sends_over(at(rank));
}

std::vector<std::string> verify_calls(const std::vector<const Graph*>& graphs,
                                      const MembersOf& members) {
  return Union(graphs, Channels(graphs, members), After::Calls).find_cycle();
}

}  // namespace weft::schedule
