// A graph: what one rank issues in one step, in order. Order is lane order plus the waits a node
// names.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "weft/schedule/node.h"

namespace weft::schedule {

// What may overlap. A lane runs its nodes as issued. The host lane is the issuing thread itself:
// whatever is issued after a host node starts after it.
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
  Copy,    // to the host's memory
  CopyIn,  // and from it
  Host,
};
inline constexpr int kLanes = static_cast<int>(Lane::Host) + 1;

std::string_view word(Lane lane);
// The lanes between a device and its host.
bool is_copy(Lane lane);
// Lanes whose nodes are one operation with the same node of the other members of a group.
bool is_collective(Lane lane);

struct Entry {
  Node node;
  Lane lane = Lane::Compute;
  std::vector<int> waits;  // indices of earlier entries
};

struct Graph {
  std::vector<Entry> entries;  // in issue order
};

// Happens-before of one graph, by vector clocks: for every entry and lane, how far that lane must
// be when the entry starts.
class Order {
 public:
  explicit Order(const Graph& graph);
  Order() = default;

  void append(const Entry& entry);
  // True if entry `first` is over before entry `second` starts. first != second.
  bool before(int first, int second) const;
  // True if entry `first` would be over before an entry on `lane` with these waits, issued next,
  // starts.
  bool before_next(int first, Lane lane, const std::vector<int>& waits) const;
  // True if some entry of `lane` may run at the same time as `entry`, which is on another lane:
  // one that is neither before nor after it.
  bool runs_beside(int entry, Lane lane) const;

 private:
  using Clock = std::array<int, kLanes>;  // position reached in each lane; -1: none

  Clock start_of(Lane lane, const std::vector<int>& waits) const;

  std::vector<Clock> ends_;    // what is over when the entry is over, itself included
  std::vector<Clock> starts_;  // what is over when the entry starts
  std::vector<int> position_;  // of each entry in its lane
  std::vector<Lane> lane_;
  std::array<std::vector<int>, kLanes> entries_;  // of each lane, by position
};

}  // namespace weft::schedule
