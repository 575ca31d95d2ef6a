// Graph as entries that name the nodes they wait for; a pass can change the order and write the
// graph again. Writing adds the waits that the anatomy requires, in any order.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Entry whose waits are nodes rather than indices.
struct NamedEntry {
  Node node;
  std::vector<Node> waits;
};

using NamedEntries = std::vector<NamedEntry>;

NamedEntries named_entries(const Graph& graph);

// Writes a training step. Every node that an entry waits for or requires must come before it.
Graph write(const NamedEntries& entries, const Anatomy& anatomy, int micro_batches);

// Moves the entry at `from` behind the one at `to`; from < to.
void move_behind(NamedEntries& entries, std::size_t from, std::size_t to);

}  // namespace weft::schedule
