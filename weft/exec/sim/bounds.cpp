#include "weft/exec/sim/bounds.h"

#include <array>
#include <optional>

#include "weft/exec/sim/operations.h"
#include "weft/schedule/meeting.h"

namespace weft::exec::sim {
namespace {

// Simulates operations one by one on an idle fabric without jitter.
class IdleFabric {
 public:
  explicit IdleFabric(const SimulatedStep& step) : step_(step), wire_ns_(step.graphs.size(), 0) {
    if (!step.wire || step.wire->fabric.is_free()) return;
    grid::Fabric steady = step.wire->fabric;
    steady.jitter_seconds = 0;
    ports_.emplace(steady, static_cast<int>(step.graphs.size()));
  }

  // By rank: time until the member's last transfer ends. Valid until the next call.
  const std::vector<std::int64_t>& wire_ns(const Operation& operation) {
    if (!ports_) return wire_ns_;
    std::ranges::fill(wire_ns_, 0);
    const std::vector<grid::Transfer> transfers =
        step_.wire->transfers(operation.meeting, operation.members);
    ends_ns_.assign(transfers.size(), now_ns_);
    ports_->reserve(now_ns_, transfers, ends_ns_);
    std::int64_t last_ns = now_ns_;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      for (const int rank : {transfers[i].from, transfers[i].to}) {
        std::int64_t& wire_ns = wire_ns_[static_cast<std::size_t>(rank)];
        wire_ns = std::max(wire_ns, ends_ns_[i] - now_ns_);
      }
      last_ns = std::max(last_ns, ends_ns_[i]);
    }
    now_ns_ = last_ns;  // all transfers are complete: the ports are idle again
    return wire_ns_;
  }

 private:
  const SimulatedStep& step_;
  std::optional<grid::Ports> ports_;
  std::vector<std::int64_t> wire_ns_;  // by rank
  std::vector<std::int64_t> ends_ns_;  // by transfer
  std::int64_t now_ns_ = 0;
};

using LaneSeconds = std::array<double, schedule::kLanes>;

// Costs and wire, by rank and lane.
class Load {
 public:
  explicit Load(const SimulatedStep& step) : step_(step), seconds_(step.graphs.size()) {
    add_costs();
    add_wire();
  }
  const std::vector<LaneSeconds>& by_rank() const { return seconds_; }

 private:
  void add(int rank, int entry, double seconds) {
    const auto& entries = step_.graphs[static_cast<std::size_t>(rank)]->entries;
    const auto lane = static_cast<std::size_t>(entries[static_cast<std::size_t>(entry)].lane);
    seconds_[static_cast<std::size_t>(rank)][lane] += seconds;
  }

  void add_costs() {
    for (std::size_t rank = 0; rank < step_.graphs.size(); ++rank) {
      const int size = static_cast<int>(step_.graphs[rank]->entries.size());
      for (int entry = 0; entry < size; ++entry) {
        const int owner = static_cast<int>(rank);
        add(owner, entry, step_.cost(owner, entry).seconds);
      }
    }
  }

  void add_wire() {
    const Operations operations(step_);
    IdleFabric fabric(step_);
    for (int i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      const std::vector<std::int64_t>& wire_ns = fabric.wire_ns(operation);
      for (std::size_t m = 0; m < operation.members.size(); ++m) {
        const int rank = operation.members[m], entry = operation.entries[m];
        if (entry == schedule::kNone) continue;
        add(rank, entry, static_cast<double>(wire_ns[static_cast<std::size_t>(rank)]) * 1e-9);
      }
    }
  }

  const SimulatedStep& step_;
  std::vector<LaneSeconds> seconds_;
};

}  // namespace

Bounds bounds_of(const SimulatedStep& step) {
  Bounds bounds;
  const Load load(step);
  for (const LaneSeconds& seconds : load.by_rank()) {
    for (int i = 0; i < schedule::kLanes; ++i) {
      const auto lane = static_cast<schedule::Lane>(i);
      const double sum = seconds[static_cast<std::size_t>(i)];
      if (lane == schedule::Lane::Compute) {
        bounds.compute_seconds = std::max(bounds.compute_seconds, sum);
      } else if (schedule::is_meeting({.lane = lane})) {
        bounds.communication_seconds = std::max(bounds.communication_seconds, sum);
      }
    }
  }
  return bounds;
}

}  // namespace weft::exec::sim
