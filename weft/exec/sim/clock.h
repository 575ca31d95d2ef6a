// The clock at work: which entries can start, which operations are on the wire.
//
// Ends follow from starts, so that the order in which local entries are looked at does not matter.
// It does matter for the wire, where operations queue for ports in the order in which they come:
// those wait in a queue by time. Whatever is not yet in the queue when nothing local is left to
// look at starts after something in it, so that the head of the queue is the next to come.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <queue>

#include "weft/exec/sim/dependencies.h"
#include "weft/exec/sim/operations.h"
#include "weft/exec/sim/simulate.h"
#include "weft/exec/sim/standstill.h"

namespace weft::exec::sim {

class Clock {
 public:
  explicit Clock(const SimulatedStep& step);
  Result run();

 private:
  struct Meeting {
    int missing = 0;              // members that have not arrived
    std::int64_t arrived_ns = 0;  // when the last of those that have did
  };
  struct Due {
    std::int64_t at_ns = 0;
    int operation = 0;
    auto operator<=>(const Due&) const = default;
  };

  void start(Place place);
  void arrive(int operation, std::int64_t now_ns);
  void carry(const Due& due);
  void occupy_ports(const Operation& operation, std::int64_t now_ns);
  void finish(Place place, std::int64_t work_from_ns, std::int64_t end_ns);
  std::int64_t issue_time(Place place) const;
  std::int64_t start_time(Place place, std::int64_t issued_ns) const;
  std::int64_t cost_ns(Place place) const;

  Interval& interval(Place place) { return result_.entries[at(place.rank)][at(place.entry)]; }
  // When an entry of a rank was over; the start of the step where there is none.
  std::int64_t end_of(int rank, int entry) const {
    return entry == schedule::kNone ? 0 : result_.entries[at(rank)][at(entry)].end_ns;
  }
  const schedule::Entry& entry_at(Place place) const {
    return step_.graphs[at(place.rank)]->entries[at(place.entry)];
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const SimulatedStep& step_;
  Operations operations_;
  std::deque<Dependencies> distinct_;              // of each graph once
  std::vector<const Dependencies*> dependencies_;  // by rank
  std::vector<std::vector<int>> pending_;          // by rank and entry: dependencies not over
  std::vector<Meeting> meetings_;                  // by operation
  std::vector<Place> ready_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> wire_queue_;
  std::optional<grid::Ports> ports_;
  std::vector<std::int64_t> wire_end_ns_;       // by rank, of the operation being carried
  std::vector<std::int64_t> transfer_ends_ns_;  // of the same
  std::int64_t issue_ns_, wake_ns_, next_ns_;
  std::size_t open_ = 0;  // entries not over
  Result result_;
};

}  // namespace weft::exec::sim
