// When the forward is done with what a recomputed node made: the one rule for the engine, which
// drops it then, and for the arithmetic of memory.
#pragma once

#include <unordered_map>
#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Follows one step, in the order its nodes are issued.
class Dropping {
 public:
  explicit Dropping(const Anatomy& anatomy) : anatomy_(anatomy) {}

  void begin() { readers_left_.clear(); }

  // A forward node has been issued: the nodes (their forward) whose remade bytes nobody reads any
  // more before they are made again.
  std::vector<Node> after(const Node& forward);

 private:
  const Anatomy& anatomy_;
  std::unordered_map<Node, std::size_t, NodeHash> readers_left_;
};

}  // namespace weft::schedule
