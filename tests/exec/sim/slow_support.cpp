#include "tests/exec/sim/slow_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "weft/schedule/meeting.h"

namespace weft::exec::sim {
namespace {

using schedule::Entry;
using schedule::Lane;
using schedule::Node;

std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

struct Running {
  std::optional<std::int64_t> issued, begin, end;
};

class SlowClock {
 public:
  explicit SlowClock(const SimulatedStep& step) : step_(step), free_(step.graphs.size(), 0) {
    for (const schedule::Graph* graph : step.graphs) ranks_.emplace_back(graph->entries.size());
    if (step.wire) ports_.emplace(step.wire->fabric, static_cast<int>(step.graphs.size()));
  }

  std::vector<std::vector<Interval>> run() {
    for (; !all_over(); ++now_) {
      EXPECT_LT(now_, 1'000'000) << "a standstill";
      if (now_ >= 1'000'000) return {};
      do {
        while (look_at_everything()) {
        }
      } while (start_one_meeting());
    }
    std::vector<std::vector<Interval>> intervals;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      intervals.emplace_back();
      for (std::size_t i = 0; i < ranks_[rank].size(); ++i) {
        const Running& entry = ranks_[rank][i];
        const bool host = entries(rank)[i].lane == Lane::Host;
        intervals.back().push_back({host ? *entry.issued : *entry.begin, *entry.end});
      }
    }
    return intervals;
  }

 private:
  const std::vector<Entry>& entries(std::size_t rank) const { return step_.graphs[rank]->entries; }
  bool is_over(const Running& entry) const { return entry.end && *entry.end <= now_; }

  bool all_over() const {
    for (const auto& rank : ranks_) {
      for (const Running& entry : rank) {
        if (!entry.end) return false;
      }
    }
    return true;
  }

  bool look_at_everything() {
    bool changed = false;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].size(); ++i) {
        changed |= issue(rank, i);
        changed |= begin(rank, i);
      }
    }
    return changed;
  }

  bool is_inline(std::size_t rank) const {
    return std::ranges::none_of(entries(rank), [](const Entry& entry) {
      return entry.lane != Lane::Compute && entry.lane != Lane::Host;
    });
  }

  // The host is free from free_[rank] on; unknown while a node that it runs is incomplete.
  bool issue(std::size_t rank, std::size_t i) {
    Running& entry = ranks_[rank][i];
    if (entry.issued || (i > 0 && !ranks_[rank][i - 1].issued)) return false;
    if (i > 0 && (entries(rank)[i - 1].lane == Lane::Host || is_inline(rank))) {
      if (!ranks_[rank][i - 1].end) return false;
      free_[rank] = *ranks_[rank][i - 1].end;
    }
    const std::int64_t when = free_[rank] + ns(step_.overheads.issue_seconds);
    if (when > now_) return false;
    entry.issued = free_[rank] = when;
    return true;
  }

  bool begin(std::size_t rank, std::size_t i) {
    Running& entry = ranks_[rank][i];
    if (!entry.issued || entry.begin) return false;
    std::int64_t free = *entry.issued, waited = 0;
    for (std::size_t j = 0; j < i; ++j) {
      if (entries(rank)[j].lane != entries(rank)[i].lane) continue;
      if (!is_over(ranks_[rank][j])) return false;
      const bool computes = entries(rank)[i].lane == schedule::Lane::Compute;
      free =
          std::max(free, *ranks_[rank][j].end + (computes ? ns(step_.overheads.next_seconds) : 0));
    }
    for (const int wait : entries(rank)[i].waits) {
      const Running& other = ranks_[rank][static_cast<std::size_t>(wait)];
      if (!is_over(other)) return false;
      waited = std::max(waited, *other.end);
    }
    entry.begin = waited > free ? waited + ns(step_.overheads.wake_seconds) : free;
    EXPECT_GE(*entry.begin, now_);
    if (members(rank, i).size() < 2) entry.end = *entry.begin + cost(rank, i);
    return true;
  }

  std::int64_t cost(std::size_t rank, std::size_t i) const {
    return ns(step_.cost(static_cast<int>(rank), static_cast<int>(i)).seconds);
  }

  std::vector<int> members(std::size_t rank, std::size_t i) const {
    const Entry& entry = entries(rank)[i];
    if (!schedule::is_meeting(entry)) return {};
    return step_.members(static_cast<int>(rank), entry);
  }

  // Members' entries of the operation that entry `i` belongs to.
  std::map<int, std::size_t> parties(std::size_t rank, std::size_t i) const {
    std::map<int, std::size_t> found;
    for (const int member : members(rank, i)) {
      const auto& theirs = entries(static_cast<std::size_t>(member));
      for (std::size_t j = 0; j < theirs.size(); ++j) {
        if (schedule::meeting_of(theirs[j].node) == schedule::meeting_of(entries(rank)[i].node)) {
          found[member] = j;
        }
      }
    }
    return found;
  }

  // First operation with all members present that has not started.
  bool start_one_meeting() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].size(); ++i) {
        const Running& entry = ranks_[rank][i];
        if (!entry.begin || *entry.begin > now_ || entry.end) continue;
        const std::map<int, std::size_t> all = parties(rank, i);
        const bool arrived = std::ranges::all_of(all, [&](const auto& party) {
          const Running& other = ranks_[static_cast<std::size_t>(party.first)][party.second];
          return other.begin && *other.begin <= now_;
        });
        if (!arrived) continue;
        carry(schedule::meeting_of(entries(rank)[i].node), members(rank, i), all);
        return true;
      }
    }
    return false;
  }

  void carry(const Node& meeting,
             const std::vector<int>& ranks,
             const std::map<int, std::size_t>& all) {
    std::vector<grid::Transfer> transfers;
    if (step_.wire) transfers = step_.wire->transfers(meeting, ranks);
    std::vector<std::int64_t> ends(transfers.size());
    if (ports_) ports_->reserve(now_, transfers, ends);
    for (const auto& [rank, entry] : all) {
      std::int64_t end = now_;
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        if (transfers[t].from == rank || transfers[t].to == rank) end = std::max(end, ends[t]);
      }
      const auto member = static_cast<std::size_t>(rank);
      ranks_[member][entry].end = end + cost(member, entry);
    }
  }

  const SimulatedStep& step_;
  std::vector<std::vector<Running>> ranks_;
  std::vector<std::int64_t> free_;  // by rank: time of the host's next issue
  std::optional<grid::Ports> ports_;
  std::int64_t now_ = 0;
};

}  // namespace

std::vector<std::vector<Interval>> simulate_slowly(const SimulatedStep& step) {
  return SlowClock(step).run();
}

}  // namespace weft::exec::sim
