// A graph taken apart into entries that name the nodes they wait for, so that a pass can change the
// order and write it down again: waits that the anatomy requires come back by themselves, whatever
// the order.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// An entry of a graph whose waits are nodes, not places in the graph.
struct NamedEntry {
  Node node;
  std::vector<Node> waits;
};

using NamedEntries = std::vector<NamedEntry>;

NamedEntries named_entries(const Graph& graph);

// Of a training step. Every node that an entry waits for or requires comes before it.
Graph write(const NamedEntries& entries, const Anatomy& anatomy, int micro_batches);

// Puts the entry at `from` behind the one at `to`; from < to.
void move_behind(NamedEntries& entries, std::size_t from, std::size_t to);

}  // namespace weft::schedule
