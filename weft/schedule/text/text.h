// The text of a graph, for people, golden files and tools; it parses back to the same graph.
//
// One line an entry, in issue order:  lane  node  [< node node ...]   with the nodes it waits for.
#pragma once

#include <string>
#include <string_view>

#include "weft/schedule/graph.h"

namespace weft::schedule {

std::string print(const Graph& graph);
// ConfigError naming the line and what is wrong with it.
Graph parse_graph(std::string_view text);

}  // namespace weft::schedule
