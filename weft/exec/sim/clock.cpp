#include "weft/exec/sim/clock.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::exec::sim {
namespace {

using schedule::kNone;
using schedule::Lane;

constexpr std::int64_t kNotOver = -1;

// Thirty years. The sum of two times up to this limit fits 64 bits.
constexpr double kLongestSeconds = 1e9;
constexpr std::int64_t kLongestNs = 1'000'000'000'000'000'000;

[[noreturn]] void throw_too_long(const std::string& what) {
  throw base::ConfigError(base::text(
      "{} would take more than {:g} seconds, the longest that is simulated: costs are too high, or "
      "the rates they were made from too low",
      what,
      kLongestSeconds));
}

std::int64_t to_ns(double seconds) {
  CHECK(!std::isnan(seconds) && seconds >= 0, "a cost of {} s", seconds);
  if (seconds > kLongestSeconds) throw_too_long("a node");
  return std::llround(seconds * 1e9);
}

}  // namespace

Clock::Clock(const SimulatedStep& step)
    : step_(step),
      operations_(step),
      wire_end_ns_(step.graphs.size(), 0),
      issue_ns_(to_ns(step.overheads.issue_seconds)),
      wake_ns_(to_ns(step.overheads.wake_seconds)),
      next_ns_(to_ns(step.overheads.next_seconds)) {
  std::map<const schedule::Graph*, const Dependencies*> known;
  for (const schedule::Graph* graph : step.graphs) {
    const Dependencies*& dependencies = known[graph];
    if (!dependencies) dependencies = &distinct_.emplace_back(*graph);
    dependencies_.push_back(dependencies);
    std::vector<int>& pending = pending_.emplace_back();
    for (int i = 0; i < dependencies->size(); ++i) pending.push_back(dependencies->count(i));
    result_.entries.emplace_back(pending.size(), Interval{.begin_ns = 0, .end_ns = kNotOver});
    open_ += pending.size();
  }
  result_.busy_ns.resize(step.graphs.size());
  for (int i = 0; i < operations_.size(); ++i) {
    meetings_.push_back({.missing = static_cast<int>(operations_[i].members.size())});
  }
  if (step.wire && !step.wire->fabric.is_free()) {
    ports_.emplace(step.wire->fabric, static_cast<int>(step.graphs.size()));
  }
}

Result Clock::run() {
  for (int rank = 0; at(rank) < pending_.size(); ++rank) {
    for (int entry = 0; at(entry) < pending_[at(rank)].size(); ++entry) {
      if (pending_[at(rank)][at(entry)] == 0) ready_.push_back({rank, entry});
    }
  }
  while (true) {
    while (!ready_.empty()) {
      const Place place = ready_.back();
      ready_.pop_back();
      start(place);
    }
    if (wire_queue_.empty()) break;
    const Due due = wire_queue_.top();
    wire_queue_.pop();
    carry(due);
  }
  if (open_ > 0) {
    const auto is_over = [&](Place place) { return end_of(place.rank, place.entry) != kNotOver; };
    throw base::ConfigError(name_standstill(step_, dependencies_, operations_, is_over));
  }
  return std::move(result_);
}

void Clock::start(Place place) {
  const std::int64_t issued_ns = issue_time(place);
  const std::int64_t start_ns = start_time(place, issued_ns);
  interval(place).begin_ns = entry_at(place).lane == Lane::Host ? issued_ns : start_ns;
  const int operation = operations_.of(place.rank, place.entry);
  if (operation == kNone) {
    finish(place, start_ns, start_ns + cost_ns(place));
  } else {
    arrive(operation, start_ns);
  }
}

// The host issues entries one after the other, from the end of the last one that held it.
std::int64_t Clock::issue_time(Place place) const {
  static_assert(kNone == -1, "the number of entries issued since, or since the start");
  const int hold = dependencies_[at(place.rank)]->hold_before(place.entry);
  return end_of(place.rank, hold) + issue_ns_ * (place.entry - hold);
}

std::int64_t Clock::start_time(Place place, std::int64_t issued_ns) const {
  const int before = dependencies_[at(place.rank)]->lane_before(place.entry);
  const bool comes_next = entry_at(place).lane == Lane::Compute && before != kNone;
  const std::int64_t free_ns =
      std::max(issued_ns, end_of(place.rank, before) + (comes_next ? next_ns_ : 0));
  std::int64_t waited_ns = 0;
  for (const int wait : entry_at(place).waits) {
    waited_ns = std::max(waited_ns, end_of(place.rank, wait));
  }
  return waited_ns > free_ns ? waited_ns + wake_ns_ : free_ns;
}

std::int64_t Clock::cost_ns(Place place) const {
  return to_ns(step_.cost(place.rank, place.entry).seconds);
}

void Clock::arrive(int operation, std::int64_t now_ns) {
  Meeting& meeting = meetings_[at(operation)];
  meeting.arrived_ns = std::max(meeting.arrived_ns, now_ns);
  if (--meeting.missing > 0) return;
  const Due due{meeting.arrived_ns, operation};
  if (ports_) {
    wire_queue_.push(due);
  } else {
    carry(due);
  }
}

void Clock::carry(const Due& due) {
  const Operation& operation = operations_[due.operation];
  for (const int rank : operation.members) wire_end_ns_[at(rank)] = due.at_ns;
  if (ports_) occupy_ports(operation, due.at_ns);
  for (std::size_t i = 0; i < operation.members.size(); ++i) {
    const Place place{operation.members[i], operation.entries[i]};
    finish(place, due.at_ns, wire_end_ns_[at(place.rank)] + cost_ns(place));
  }
}

void Clock::occupy_ports(const Operation& operation, std::int64_t now_ns) {
  const std::vector<grid::Transfer> transfers =
      step_.wire->transfers(operation.meeting, operation.members);
  transfer_ends_ns_.assign(transfers.size(), now_ns);
  ports_->reserve(now_ns, transfers, transfer_ends_ns_);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    for (const int rank : {transfers[i].from, transfers[i].to}) {
      CHECK(rank >= 0 && at(rank) < wire_end_ns_.size(), "a transfer of rank {}", rank);
      wire_end_ns_[at(rank)] = std::max(wire_end_ns_[at(rank)], transfer_ends_ns_[i]);
    }
  }
}

void Clock::finish(Place place, std::int64_t work_from_ns, std::int64_t end_ns) {
  if (end_ns > kLongestNs) throw_too_long("the step");
  interval(place).end_ns = end_ns;
  const auto lane = static_cast<std::size_t>(entry_at(place).lane);
  result_.busy_ns[at(place.rank)][lane] += end_ns - work_from_ns;
  result_.step_ns = std::max(result_.step_ns, end_ns);
  --open_;
  for (const int follower : dependencies_[at(place.rank)]->followers(place.entry)) {
    if (--pending_[at(place.rank)][at(follower)] == 0) ready_.push_back({place.rank, follower});
  }
}

Result simulate(const SimulatedStep& step) { return Clock(step).run(); }

}  // namespace weft::exec::sim
