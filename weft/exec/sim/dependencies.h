// Dependencies of each entry of a graph: the entry before it on its lane, the last entry that held
// the host, and its waits.
//
// A host entry holds the host until it is complete. If compute is the only lane besides the host,
// exec/real runs compute inline, and every entry holds the host.
#pragma once

#include <span>
#include <vector>

#include "weft/schedule/graph.h"

namespace weft::exec::sim {

class Dependencies {
 public:
  explicit Dependencies(const schedule::Graph& graph);

  int size() const { return static_cast<int>(lane_before_.size()); }
  // kNone: no such entry.
  int lane_before(int entry) const { return lane_before_[at(entry)]; }
  int hold_before(int entry) const { return hold_before_[at(entry)]; }
  // Number of times that the entry appears in followers(); an edge with two reasons counts twice.
  int count(int entry) const { return count_[at(entry)]; }
  std::span<const int> followers(int entry) const {
    return std::span(followers_)
        .subspan(at(first_[at(entry)]), at(first_[at(entry) + 1] - first_[at(entry)]));
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::vector<int> lane_before_;
  std::vector<int> hold_before_;
  std::vector<int> count_;
  std::vector<int> first_;      // start of each entry's followers, and the end
  std::vector<int> followers_;  // all entries, concatenated
};

}  // namespace weft::exec::sim
