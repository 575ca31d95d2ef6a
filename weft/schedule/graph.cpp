#include "weft/schedule/graph.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::schedule {
namespace {

using base::at;
std::size_t at(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

std::string_view word(Lane lane) {
  switch (lane) {
    case Lane::Compute:
      return "compute";
    case Lane::Ep:
      return "ep";
    case Lane::Dp:
      return "dp";
    case Lane::Tp:
      return "tp";
    case Lane::Cp:
      return "cp";
    case Lane::PpSendNext:
      return "pp_send_next";
    case Lane::PpSendPrevious:
      return "pp_send_previous";
    case Lane::PpReceiveNext:
      return "pp_receive_next";
    case Lane::PpReceivePrevious:
      return "pp_receive_previous";
    case Lane::Copy:
      return "copy";
    case Lane::CopyIn:
      return "copy_in";
    case Lane::Host:
      return "host";
  }
  return "";
}

bool is_copy(Lane lane) { return lane == Lane::Copy || lane == Lane::CopyIn; }

Order::Order(const Graph& graph) {
  for (const Entry& entry : graph.entries) append(entry);
}

void Order::append(const Entry& entry) {
  const int index = static_cast<int>(ends_.size());
  const std::size_t lane = at(entry.lane);
  Clock clock = start_of(entry.lane, entry.waits);
  starts_.push_back(clock);
  const int position = static_cast<int>(entries_[lane].size());
  clock[lane] = position;
  ends_.push_back(clock);
  position_.push_back(position);
  lane_.push_back(entry.lane);
  entries_[lane].push_back(index);
}

Order::Clock Order::start_of(Lane lane, const std::vector<int>& waits) const {
  Clock clock;
  clock.fill(-1);
  const auto join = [&](int entry) {
    CHECK(at(entry) < ends_.size(), "a wait for entry {} of {}", entry, ends_.size());
    for (std::size_t i = 0; i < clock.size(); ++i)
      clock[i] = std::max(clock[i], ends_[at(entry)][i]);
  };
  for (const Lane earlier : {lane, Lane::Host}) {
    if (!entries_[at(earlier)].empty()) join(entries_[at(earlier)].back());
  }
  for (const int wait : waits) join(wait);
  return clock;
}

bool Order::before(int first, int second) const {
  return starts_[at(second)][at(lane_[at(first)])] >= position_[at(first)];
}

bool Order::before_next(int first, Lane lane, const std::vector<int>& waits) const {
  return start_of(lane, waits)[at(lane_[at(first)])] >= position_[at(first)];
}

// A lane's entries fall into three consecutive groups: before `entry`, unordered with it, after it.
// The first one that is not before it decides.
bool Order::runs_beside(int entry, Lane lane) const {
  const std::size_t next = at(starts_[at(entry)][at(lane)] + 1);
  if (next >= entries_[at(lane)].size()) return false;
  return !before(entry, entries_[at(lane)][next]);
}

}  // namespace weft::schedule
