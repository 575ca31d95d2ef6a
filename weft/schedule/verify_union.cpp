#include "weft/schedule/verify_union.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/piece_table.h"

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
  Channels(const std::vector<const Graph*>& graphs, const MembersOf& members) : graphs_(graphs) {
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
        operations_[at(found->second)][static_cast<int>(rank)].push_back(
            static_cast<int>(numbers.size()) - 1);
      }
    }
  }

  int of(std::size_t rank, std::size_t entry) const { return of_entry_[rank][entry]; }

  // First difference between two members' orders, if any.
  std::vector<Fault> compare() const {
    std::vector<Fault> faults;
    for (const auto& [channel, number] : numbers_) {
      const int first = channel.members.front();
      for (const int member : channel.members) {
        if (member == first) continue;
        if (auto fault = compare(channel, number, first, member)) {
          faults.push_back(std::move(*fault));
        }
      }
    }
    return faults;
  }

 private:
  // Entries of a rank in a channel.
  const std::vector<int>& entries_of(int number, int rank) const {
    static const std::vector<int> kNothing;
    const std::map<int, std::vector<int>>& by_rank = operations_[at(number)];
    const auto found = by_rank.find(rank);
    return found == by_rank.end() ? kNothing : found->second;
  }

  const Node& node(int rank, int entry) const { return graphs_[at(rank)]->entries[at(entry)].node; }

  std::optional<Fault> compare(const Channel& channel, int number, int rank, int peer) const {
    const std::vector<int>&mine = entries_of(number, rank), &theirs = entries_of(number, peer);
    for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
      const bool both = i < mine.size() && i < theirs.size();
      if (both && meeting_of(node(rank, mine[i])) == meeting_of(node(peer, theirs[i]))) continue;
      Fault fault;
      const auto name = [&](int of, const std::vector<int>& entries) {
        if (i >= entries.size()) return std::string("nothing");
        fault.wrong.push_back({.rank = of, .entry = entries[i]});
        return print(node(of, entries[i]));
      };
      const std::string own = name(rank, mine), other = name(peer, theirs);
      fault.what = base::text("lane {}: operation {} is {} on rank {} and {} on rank {}",
                              word(channel.lane),
                              i,
                              own,
                              rank,
                              other,
                              peer);
      fault.fix = both ? base::text("issue the operations of lane {} in one order on both ranks",
                                    word(channel.lane))
                       : base::text("issue {} on both ranks, or on neither",
                                    own == "nothing" ? other : own);
      return fault;
    }
    return std::nullopt;
  }

  const std::vector<const Graph*>& graphs_;
  std::map<Channel, int> numbers_;
  std::vector<std::map<int, std::vector<int>>> operations_;  // entries by channel and rank
  std::vector<std::vector<int>> of_entry_;                   // by rank and entry; -1: local
};

// Order relation. Ends: what must have ended before, by lanes and waits. Calls: the collective that
// a rank calls before, on any lane.
enum class After { Ends, Calls };

// Reason for which an entry comes after another one of its rank.
enum class Why { Lane, Host, Wait, Call };

// Entry `waiter` of a rank comes after its entry `waited`.
struct Step {
  int rank = 0, waiter = 0, waited = 0;
  Why why = Why::Wait;
};

// Graph of entries; the entries of one operation share a vertex.
class Union {
 public:
  Union(const std::vector<const Graph*>& graphs, const Channels& channels, After after)
      : graphs_(graphs), channels_(channels), after_(after) {
    vertex_.resize(graphs.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      for (std::size_t i = 0; i < graphs[rank]->entries.size(); ++i) {
        vertex_[rank].push_back(vertex_for(rank, i, channels.of(rank, i)));
      }
    }
    edges_.resize(owners_.size());
    incoming_.resize(owners_.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      for_each_step(rank, [&](const Step& step) {
        const int from = vertex_[rank][at(step.waited)], to = vertex_[rank][at(step.waiter)];
        edges_[at(from)].push_back(to);
        ++incoming_[at(to)];
      });
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

  // Circle of entries that wait for each other, one step a wait; empty: none.
  std::vector<Step> find_circle() const {
    std::vector<int> missing = incoming_;
    if (in_order(missing).size() == owners_.size()) return {};
    const std::vector<int> circle = short_circle(missing);
    std::map<int, std::size_t> place;  // vertex to place
    for (std::size_t i = 0; i < circle.size(); ++i) place[circle[i]] = i;
    std::vector<std::optional<Step>> steps(circle.size());
    for (std::size_t rank = 0; rank < graphs_.size(); ++rank) {
      for_each_step(rank, [&](const Step& step) {
        const auto waiter = place.find(vertex_[rank][at(step.waiter)]);
        if (waiter == place.end()) return;
        const int next = circle[(waiter->second + 1) % circle.size()];
        if (vertex_[rank][at(step.waited)] == next) steps[waiter->second] = step;
      });
    }
    std::vector<Step> found;
    for (const std::optional<Step>& step : steps) found.push_back(step.value());
    return found;
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

  // Circle of vertices without a shorter way back to its first one; each waits for the next, the
  // last for the first. `missing`: open predecessors of the vertices that never become ready.
  std::vector<int> short_circle(const std::vector<int>& missing) const {
    // A vertex that never becomes ready waits for another one. So the way back ends in a circle.
    std::vector<int> blocked_by(owners_.size(), -1);
    int start = -1;
    for (std::size_t from = 0; from < owners_.size(); ++from) {
      if (missing[from] == 0) continue;
      for (const int to : edges_[from]) blocked_by[at(to)] = static_cast<int>(from);
      start = static_cast<int>(from);
    }
    for (std::size_t steps = 0; steps < owners_.size(); ++steps) start = blocked_by[at(start)];
    std::vector<int> waits_for(owners_.size(), -1);
    std::vector<int> reached{start};
    for (std::size_t i = 0; waits_for[at(start)] < 0; ++i) {
      for (const int next : edges_[at(reached[i])]) {
        if (missing[at(next)] == 0 || waits_for[at(next)] >= 0) continue;
        waits_for[at(next)] = reached[i];
        reached.push_back(next);
      }
    }
    std::vector<int> circle{start};
    for (int v = waits_for[at(start)]; v != start; v = waits_for[at(v)]) circle.push_back(v);
    return circle;
  }

  // Calls visit(step) for what each entry of a rank directly comes after.
  template <typename Visit>
  void for_each_step(std::size_t rank, const Visit& visit) const {
    std::array<int, kLanes> last;
    last.fill(-1);
    int called = -1;
    const std::vector<Entry>& entries = graphs_[rank]->entries;
    const int size = static_cast<int>(entries.size()), own = static_cast<int>(rank);
    for (int i = 0; i < size; ++i) {
      const Entry& entry = entries[at(i)];
      if (after_ == After::Calls) {
        if (channels_.of(rank, at(i)) < 0 || is_exchange(entry.node)) continue;
        if (called >= 0) visit(Step{own, i, called, Why::Call});
        called = i;
        continue;
      }
      const auto lane = static_cast<std::size_t>(entry.lane);
      const int host = last[static_cast<std::size_t>(Lane::Host)];
      if (last[lane] >= 0) visit(Step{own, i, last[lane], Why::Lane});
      if (host >= 0) visit(Step{own, i, host, Why::Host});
      for (const int wait : entry.waits) visit(Step{own, i, wait, Why::Wait});
      last[lane] = i;
    }
  }

  const std::vector<const Graph*>& graphs_;
  const Channels& channels_;
  After after_;
  std::vector<std::vector<int>> vertex_;
  std::map<std::pair<int, Node>, int> operations_;
  std::vector<Owner> owners_;
  std::vector<std::vector<int>> edges_;
  std::vector<int> incoming_;
};

// Consecutive steps along one lane, or along the calls of one rank, as one.
struct Run {
  Step step;
  int between = 0;  // entries that it passes
};

bool go_on(const Step& before, const Step& step) {
  return before.rank == step.rank && before.waited == step.waiter && before.why == step.why &&
         (step.why == Why::Lane || step.why == Why::Call);
}

// Runs of a circle, from its least entry that is not inside a run.
std::vector<Run> runs_of(std::vector<Step> steps) {
  std::size_t first = 0;
  const auto key = [&](std::size_t i) { return std::pair(steps[i].rank, steps[i].waiter); };
  const auto is_inside = [&](std::size_t i) {
    return go_on(steps[(i + steps.size() - 1) % steps.size()], steps[i]);
  };
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (is_inside(first) || (!is_inside(i) && key(i) < key(first))) first = i;
  }
  std::ranges::rotate(steps, steps.begin() + static_cast<std::ptrdiff_t>(first));
  std::vector<Run> runs;
  for (const Step& step : steps) {
    if (!runs.empty() && go_on(runs.back().step, step)) {
      runs.back().step.waited = step.waited;
      ++runs.back().between;
    } else {
      runs.push_back({.step = step});
    }
  }
  return runs;
}

std::string reason_of(const Run& run, Lane lane) {
  switch (run.step.why) {
    case Why::Wait:
      return "";
    case Why::Host:
      return ": a host node before it";
    case Why::Call:
      if (run.between == 0) return ": the collective before it";
      return base::text(": {} before it", base::counted(run.between + 1, "collective"));
    case Why::Lane:
      if (run.between == 0) return base::text(": the node before it on lane {}", word(lane));
      return base::text(": {} before it on lane {}",
                        base::counted(run.between + 1, "node"),
                        word(lane));
  }
  return "";
}

// Fault of a circle; `what` names it behind the ranks.
Fault circle_fault(const std::vector<const Graph*>& graphs,
                   const std::vector<Step>& steps,
                   std::string_view what) {
  Fault fault;
  std::set<int> ranks;
  std::set<Position> wrong;
  const std::vector<Run> runs = runs_of(steps);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Step& step = runs[i].step;
    const std::vector<Entry>& entries = graphs[at(step.rank)]->entries;
    const Entry &waiter = entries[at(step.waiter)], &waited = entries[at(step.waited)];
    ranks.insert(step.rank);
    wrong.insert({.rank = step.rank, .entry = step.waiter});
    wrong.insert({.rank = step.rank, .entry = step.waited});
    fault.waits.push_back(base::text("rank {}: {} waits for {}{}",
                                     step.rank,
                                     print(waiter.node),
                                     print(waited.node),
                                     reason_of(runs[i], waiter.lane)));
    const Step& next = runs[(i + 1) % runs.size()].step;
    const Node& met = graphs[at(next.rank)]->entries[at(next.waiter)].node;
    if (met == waited.node) continue;
    fault.waits.push_back(base::text("        {} is one operation with {} of rank {}",
                                     print(waited.node),
                                     print(met),
                                     next.rank));
  }
  fault.wrong.assign(wrong.begin(), wrong.end());
  fault.what = base::text("ranks {} {}", fmt::join(ranks, ", "), what);
  fault.fix =
      "break the circle at one of these waits: move one of its two nodes, or remove the wait";
  return fault;
}

}  // namespace

std::vector<Fault> verify_union(const std::vector<const Graph*>& graphs, const MembersOf& members) {
  const Channels channels(graphs, members);
  std::vector<Fault> faults = channels.compare();
  if (!faults.empty()) return faults;
  const std::vector<Step> circle = Union(graphs, channels, After::Ends).find_circle();
  if (circle.empty()) return {};
  return {circle_fault(graphs, circle, "wait for each other in a circle")};
}

SendsOver sends_over(const std::vector<const Graph*>& graphs, const MembersOf& members, int rank) {
  const Channels channels(graphs, members);
  return Union(graphs, channels, After::Ends).sends_over(at(rank));
}

std::vector<Fault> verify_calls(const std::vector<const Graph*>& graphs, const MembersOf& members) {
  const Channels channels(graphs, members);
  const std::vector<Step> circle = Union(graphs, channels, After::Calls).find_circle();
  if (circle.empty()) return {};
  return {circle_fault(graphs, circle, "call collectives in orders that make a circle")};
}

}  // namespace weft::schedule
