#include "weft/schedule/node_index.h"

#include <bit>
#include <utility>

#include "weft/base/check.h"

namespace weft::schedule {

std::size_t NodeIndex::place_of(const Node& node) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t place = NodeHash()(node) & mask;
  while (slots_[place].number != kNone && slots_[place].node != node) place = (place + 1) & mask;
  return place;
}

bool NodeIndex::add(const Node& node, int number) {
  Slot& slot = slots_[place_of(node)];
  if (slot.number != kNone) return false;
  slot = {.node = node, .number = number};
  if (++nodes_ * 2 > slots_.size()) grow(2 * slots_.size());
  return true;
}

void NodeIndex::change(const Node& node, int number) {
  Slot& slot = slots_[place_of(node)];
  CHECK(slot.number != kNone, "{} has no number", print(node));
  slot.number = number;
}

std::optional<int> NodeIndex::find(const Node& node) const {
  const Slot& slot = slots_[place_of(node)];
  if (slot.number == kNone) return std::nullopt;
  return slot.number;
}

void NodeIndex::reserve(std::size_t nodes) {
  const std::size_t slots = std::bit_ceil(2 * nodes + 2);
  if (slots > slots_.size()) grow(slots);
}

void NodeIndex::grow(std::size_t slots) {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& slot : before) {
    if (slot.number != kNone) slots_[place_of(slot.node)] = slot;
  }
}

}  // namespace weft::schedule
