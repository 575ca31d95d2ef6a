// Text form of a graph, for readers, golden files and tools; it parses back to an equal graph.
//
// One line per entry, in issue order: lane node [< node node ...] with the nodes it waits for.
#pragma once

#include <string>
#include <string_view>

#include "weft/schedule/graph.h"

namespace weft::schedule {

std::string print(const Graph& graph);
// Throws ConfigError with the line and the error.
Graph parse_graph(std::string_view text);

}  // namespace weft::schedule
