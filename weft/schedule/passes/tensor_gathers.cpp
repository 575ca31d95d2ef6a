#include "weft/schedule/passes/tensor_gathers.h"

#include <algorithm>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Whether a node is a step of the input gradient that a gather's weight gradient belongs to, or of
// what that sends.
bool is_step_behind(const Anatomy& anatomy, const Node& gather, const Node& node) {
  if (node.direction != Direction::D || node.layer != gather.layer || node.piece != gather.piece ||
      node.micro_batch != gather.micro_batch) {
    return false;
  }
  const PieceAnatomy& piece = piece_of(anatomy, node);
  return piece.steps && piece.steps->exchange == gather.part;
}

}  // namespace

Graph gather_before_products(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Node gather = entries[i].node;
    if (gather.direction != Direction::R || gather.part != Part::Gather) continue;
    std::size_t first = i;
    while (first > 0 && is_step_behind(anatomy, gather, entries[first - 1].node)) --first;
    const auto begin = entries.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(first),
                begin + static_cast<std::ptrdiff_t>(i),
                begin + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return write(entries, anatomy, micro_batches);
}

}  // namespace weft::schedule
