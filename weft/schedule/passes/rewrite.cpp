#include "weft/schedule/passes/rewrite.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/builders/writer.h"

namespace weft::schedule {

NamedEntries named_entries(const Graph& graph) {
  NamedEntries entries;
  entries.reserve(graph.entries.size());
  for (const Entry& entry : graph.entries) {
    NamedEntry named{.node = entry.node, .waits = {}};
    named.waits.reserve(entry.waits.size());
    for (const int wait : entry.waits) {
      named.waits.push_back(graph.entries[static_cast<std::size_t>(wait)].node);
    }
    entries.push_back(std::move(named));
  }
  return entries;
}

Graph write(const NamedEntries& entries, const Anatomy& anatomy, int micro_batches) {
  GraphWriter writer(anatomy, micro_batches, StepKind::Training);
  writer.reserve(entries.size());
  for (const NamedEntry& entry : entries) writer.add(entry.node, entry.waits);
  return writer.take();
}

void move_behind(NamedEntries& entries, std::size_t from, std::size_t to) {
  CHECK(from < to && to < entries.size(), "entry {} behind {} of {}", from, to, entries.size());
  const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(from);
  std::rotate(begin, begin + 1, entries.begin() + static_cast<std::ptrdiff_t>(to) + 1);
}

}  // namespace weft::schedule
