// Numbers of nodes, in one flat table: plans of large models ask for them millions of times.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "weft/schedule/node.h"

namespace weft::schedule {

class NodeIndex {
 public:
  // Whether the node is new; one that has a number keeps it. Numbers are not negative.
  bool add(const Node& node, int number);
  void change(const Node& node, int number);  // of one that has a number
  std::optional<int> find(const Node& node) const;
  bool contains(const Node& node) const { return find(node).has_value(); }

 private:
  struct Slot {
    Node node{};
    int number = kNone;  // an empty slot has none
  };
  // Where the node is, or would be; there is an empty slot.
  std::size_t place_of(const Node& node) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half of them full
  std::size_t nodes_ = 0;
};

}  // namespace weft::schedule
