#include "weft/schedule/passes/slices.h"

#include <array>

#include "weft/base/check.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

constexpr std::size_t kLegs = static_cast<std::size_t>(Leg::Home) + 1;

Leg leg_of(const Node& node) {
  const PieceRow& row = row_of(node.piece);
  const Leg leg = node.direction == Direction::F ? row.forward_leg : row.backward_leg;
  CHECK(leg != Leg::None, "{} stands between slices", print(node));
  return leg;
}

// Slices of one layer and micro-batch in one direction.
class Slices {
 public:
  void add(NamedEntry entry) {
    const std::size_t slice =
        entry.node.slice == kNone ? 0 : static_cast<std::size_t>(entry.node.slice);
    if (slice >= slices_.size()) slices_.resize(slice + 1);
    slices_[slice][static_cast<std::size_t>(leg_of(entry.node))].push_back(std::move(entry));
  }

  // Each slice starts its transfer before the previous slice is with its experts. It is put in
  // place after the next slice has left them.
  void stagger(NamedEntries& order) {
    const std::size_t count = slices_.size();
    if (count > 0) move(0, Leg::There, order);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + 1 < count) move(i + 1, Leg::There, order);
      move(i, Leg::Experts, order);
      move(i, Leg::Back, order);
      if (i > 0) move(i - 1, Leg::Home, order);
    }
    if (count > 0) move(count - 1, Leg::Home, order);
    slices_.clear();
  }

 private:
  void move(std::size_t slice, Leg leg, NamedEntries& order) {
    for (NamedEntry& entry : slices_[slice][static_cast<std::size_t>(leg)]) {
      order.push_back(std::move(entry));
    }
  }

  std::vector<std::array<NamedEntries, kLegs>> slices_;
};

}  // namespace

Graph stagger_slices(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  Slices slices;
  NamedEntries order;
  for (NamedEntry& entry : named_entries(graph)) {
    // Nodes with a leg but no slice (the host's sizes) go with the first slice.
    const PieceRow& row = row_of(entry.node.piece);
    const bool is_slice = row.is_sliced && entry.node.slice != kNone;
    const bool inside = is_slice || row.forward_leg != Leg::None;
    if (inside) {
      slices.add(std::move(entry));
    } else {
      slices.stagger(order);
      order.push_back(std::move(entry));
    }
  }
  slices.stagger(order);
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
