#include "weft/schedule/passes/ring_ahead.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "weft/schedule/dependencies.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Attention step before the one that reads a received ring step; nullopt: the first step read, or
// recomputed attention, which reads all steps at once.
std::optional<Node> step_before(const Anatomy& anatomy, const Node& node) {
  const bool brings = node.direction == Direction::F || node.direction == Direction::R;
  if (!brings || node.part != Part::Ring) return {};
  for (const PieceAnatomy& reader : anatomy.layers[static_cast<std::size_t>(node.layer)]) {
    if (!reader.steps || !follows(reader, {node.piece, node.part})) continue;
    if (node.direction == Direction::R && reader.is_recomputed) return {};
    Node before = node;
    before.part = reader.part;
    before.slice += node.direction == Direction::F ? -1 : 1;
    if (node.direction == Direction::R) before.direction = Direction::D;
    if (reader.steps->has(before.slice)) return before;
  }
  return {};
}

}  // namespace

Graph run_ring_ahead(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  std::unordered_map<Node, NamedEntry, NodeHash> ahead;  // by the node that they precede
  NamedEntries rest;
  for (NamedEntry& entry : named_entries(graph)) {
    const std::optional<Node> before = step_before(anatomy, entry.node);
    if (!before) {
      rest.push_back(std::move(entry));
      continue;
    }
    std::erase(entry.waits, *before);
    ahead.emplace(*before, std::move(entry));
  }
  NamedEntries order;
  for (NamedEntry& entry : rest) {
    if (const auto found = ahead.find(entry.node); found != ahead.end()) {
      order.push_back(std::move(found->second));
    }
    order.push_back(std::move(entry));
  }
  return write(order, anatomy, micro_batches);
}

Graph run_ring_in_line(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  std::optional<Node> compute;  // last one
  std::vector<Node> exchanges;  // after `compute`
  for (NamedEntry& entry : entries) {
    const Lane lane = lane_of(anatomy, entry.node);
    if (lane == Lane::Compute) {
      std::ranges::move(exchanges, std::back_inserter(entry.waits));
      exchanges.clear();
      compute = entry.node;
    } else if (lane == Lane::Cp) {
      if (compute) entry.waits.push_back(*compute);
      exchanges.push_back(entry.node);
    }
  }
  return write(entries, anatomy, micro_batches);
}

}  // namespace weft::schedule
