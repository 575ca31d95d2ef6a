// Time at which the forward drops the output of a recomputed or offloaded node: one rule for the
// engine and for memory estimates.
//
// Recomputed output is dropped after its last forward reader. Offloaded output also waits until its
// copy has been issued. If a later layer waits for that copy (releasing_layer), the output is
// dropped just before that layer's part: memory freed before its copy has ended would make compute
// wait.
#pragma once

#include <unordered_map>
#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Follows one step in issue order.
class Dropping {
 public:
  explicit Dropping(const Anatomy& anatomy) : anatomy_(anatomy) {}

  void begin() { readers_left_.clear(); }

  // Forward nodes whose absent bytes are dropped just before a node is issued, or just after.
  std::vector<Node> before(const Node& node);
  std::vector<Node> after(const Node& node);

 private:
  bool is_last(const Node& made, const PieceAnatomy& piece);
  void after_forward(const Node& forward, std::vector<Node>& over);
  void after_reader(const Node& forward,
                    const PieceAnatomy& piece,
                    int layer,
                    std::vector<Node>& over);

  const Anatomy& anatomy_;
  std::unordered_map<Node, std::size_t, NodeHash> readers_left_;
};

}  // namespace weft::schedule
