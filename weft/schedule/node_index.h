// Map from nodes to numbers in a flat hash table: plans of large models look up millions of nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "weft/schedule/node.h"

namespace weft::schedule {

class NodeIndex {
 public:
  // True if the node is new; an existing node keeps its number. Numbers are not negative.
  bool add(const Node& node, int number);
  void change(const Node& node, int number);  // the node must have a number
  std::optional<int> find(const Node& node) const;
  bool contains(const Node& node) const { return find(node).has_value(); }
  // Reserves memory for `nodes` nodes.
  void reserve(std::size_t nodes);

 private:
  struct Slot {
    Node node{};
    int number = kNone;  // kNone: empty slot
  };
  // Slot of the node, or the slot for inserting it; the table is never full.
  std::size_t place_of(const Node& node) const;
  void grow(std::size_t slots);

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // size: a power of two; at most half full
  std::size_t nodes_ = 0;
};

}  // namespace weft::schedule
