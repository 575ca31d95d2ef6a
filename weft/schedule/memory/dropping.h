// When the forward is done with what a node made that is recomputed or offloaded: the one rule for
// the engine, which drops it then, and for the arithmetic of memory.
//
// What is recomputed goes behind its last reader in the forward. What is offloaded goes when its
// copy has been issued too and, where a later layer waits for that copy (releasing_layer), in front
// of that layer's part: memory that is free before its copy is over would make compute wait.
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

  // The nodes (their forward) whose remade bytes nobody reads any more before they are there again:
  // when a node is about to be issued, and when it has been.
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
