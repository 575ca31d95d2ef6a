// Graph: the nodes that a rank issues in one step, in order. Execution order follows from lane
// order and the waits that nodes name.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "weft/schedule/node.h"

namespace weft::schedule {

// Lane: nodes of a lane run in issue order; lanes run concurrently. The host lane is the issuing
// thread: nodes issued after a host node start after it.
enum class Lane {
  Compute,
  Ep,
  Dp,
  Tp,
  Cp,
  PpSendNext,
  PpSendPrevious,
  PpReceiveNext,
  PpReceivePrevious,
  Copy,    // to host memory
  CopyIn,  // from host memory
  Host,
};
inline constexpr int kLanes = static_cast<int>(Lane::Host) + 1;

std::string_view word(Lane lane);
// True for the two lanes between device and host.
bool is_copy(Lane lane);

struct Entry {
  Node node;
  Lane lane = Lane::Compute;
  std::vector<int> waits;  // indices of earlier entries
};

struct Graph {
  std::vector<Entry> entries;  // in issue order
};

// Happens-before relation of a graph, by vector clocks: the position that every lane must have
// reached when an entry starts.
class Order {
 public:
  explicit Order(const Graph& graph);
  Order() = default;

  void append(const Entry& entry);
  // True if entry `first` ends before entry `second` starts. first != second.
  bool before(int first, int second) const;
  // True if entry `first` ends before a next entry on `lane` with these waits would start.
  bool before_next(int first, Lane lane, const std::vector<int>& waits) const;
  // True if some entry of `lane` is unordered with `entry`, which is on another lane.
  bool runs_beside(int entry, Lane lane) const;

 private:
  using Clock = std::array<int, kLanes>;  // position reached in each lane; -1: none

  Clock start_of(Lane lane, const std::vector<int>& waits) const;

  std::vector<Clock> ends_;    // positions reached at the entry's end, including itself
  std::vector<Clock> starts_;  // positions reached at the entry's start
  std::vector<int> position_;  // by entry: position in its lane
  std::vector<Lane> lane_;
  std::array<std::vector<int>, kLanes> entries_;  // by lane and position
};

}  // namespace weft::schedule
