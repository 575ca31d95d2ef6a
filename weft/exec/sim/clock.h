// Clock of the simulation: entries that can start, and operations on the wire.
//
// Ends follow from starts, so local entries may be processed in any order. Wire operations queue
// for ports in order of arrival; they wait in a queue by time. When no local entry is ready, every
// operation outside the queue starts after some operation in it. The head of the queue is therefore
// the next to start.
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
    std::int64_t arrived_ns = 0;  // latest arrival so far
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
  // End of a rank's entry; kNone: the start of the step.
  std::int64_t end_of(int rank, int entry) const {
    return entry == schedule::kNone ? 0 : result_.entries[at(rank)][at(entry)].end_ns;
  }
  const schedule::Entry& entry_at(Place place) const {
    return step_.graphs[at(place.rank)]->entries[at(place.entry)];
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const SimulatedStep& step_;
  Operations operations_;
  std::deque<Dependencies> distinct_;              // one per distinct graph
  std::vector<const Dependencies*> dependencies_;  // by rank
  std::vector<std::vector<int>> pending_;          // by rank and entry: open dependencies
  std::vector<Meeting> meetings_;                  // by operation
  std::vector<Place> ready_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> wire_queue_;
  std::optional<grid::Ports> ports_;
  std::vector<std::int64_t> wire_end_ns_;       // by rank, of the current operation
  std::vector<std::int64_t> transfer_ends_ns_;  // by transfer, of the current operation
  std::int64_t issue_ns_, wake_ns_, next_ns_;
  std::size_t open_ = 0;  // entries that are not complete
  Result result_;
};

}  // namespace weft::exec::sim
