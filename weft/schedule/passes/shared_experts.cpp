#include "weft/schedule/passes/shared_experts.h"

#include <map>
#include <tuple>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// One layer and micro-batch in one direction: layer, micro-batch, true if forward.
using Way = std::tuple<int, int, bool>;

Way way_of(const Node& node) {
  return {node.layer, node.micro_batch, node.direction == Direction::F};
}

// Shared experts' entries of one layer, micro-batch and direction.
struct Halves {
  NamedEntries under_first, under_second;  // under the first transfer of rows, and under the second
};

// First half: the first product and its gather. Second half: the rest.
bool is_of_first_half(Part part) { return part == Part::Gather || part == Part::Fc1; }

std::map<Way, Halves> take_shared(NamedEntries& entries) {
  std::map<Way, Halves> taken;
  NamedEntries others;
  for (NamedEntry& entry : entries) {
    const Node& node = entry.node;
    if (node.piece != Piece::Shared) {
      others.push_back(std::move(entry));
      continue;
    }
    const bool is_early = is_of_first_half(node.part) == (node.direction == Direction::F);
    Halves& halves = taken[way_of(node)];
    (is_early ? halves.under_first : halves.under_second).push_back(std::move(entry));
  }
  entries = std::move(others);
  return taken;
}

// True for the last return of a layer's rows.
bool is_last_return_of_rows(const Anatomy& anatomy, const Node& node) {
  const Place back = node.direction == Direction::F ? Place::Combine : Place::Dispatch;
  return row_of(node.piece).place == back &&
         (node.slice == kNone || node.slice + 1 == anatomy.flow.slices);
}

void move(NamedEntries& from, NamedEntries& to) {
  for (NamedEntry& entry : from) to.push_back(std::move(entry));
  from.clear();
}

}  // namespace

Graph overlap_shared_experts(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  std::map<Way, Halves> shared = take_shared(entries);
  NamedEntries order;
  for (NamedEntry& entry : entries) {
    const auto own = shared.find(way_of(entry.node));
    const bool back = is_last_return_of_rows(anatomy, entry.node);
    // Before the first experts, after the transfers to them.
    if (own != shared.end() && row_of(entry.node.piece).place == Place::Between) {
      move(own->second.under_first, order);
    }
    order.push_back(std::move(entry));
    if (own != shared.end() && back) move(own->second.under_second, order);
  }
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
