#include "weft/schedule/passes/snapshot.h"

#include <algorithm>

#include "weft/schedule/passes/rewrite.h"
#include "weft/schedule/step_end.h"

namespace weft::schedule {
namespace {

constexpr Node kSnapshot{.piece = Piece::Snapshot};

}  // namespace

Anatomy with_snapshot(Anatomy anatomy) {
  StepNodeAnatomy snapshot{.node = kSnapshot, .lane = Lane::Copy};
  for (const StepNodeAnatomy& ahead : anatomy.step_start) snapshot.after.push_back(ahead.node);
  for (StepNodeAnatomy& end : anatomy.step_end) {
    const bool changes = end.node.piece == Piece::Optimizer || end.node.piece == Piece::Update;
    if (changes) end.after.push_back(kSnapshot);
  }
  anatomy.step_start.push_back(std::move(snapshot));
  return anatomy;
}

Graph place_snapshot(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  NamedEntries entries = named_entries(graph);
  const std::vector<Node>& needs = step_node_of(anatomy, kSnapshot).after;
  const auto last = std::find_if(entries.rbegin(), entries.rend(), [&](const NamedEntry& entry) {
    return std::ranges::find(needs, entry.node) != needs.end();
  });
  entries.insert(last.base(), {.node = kSnapshot, .waits = {}});
  return write(entries, anatomy, micro_batches);
}

}  // namespace weft::schedule
