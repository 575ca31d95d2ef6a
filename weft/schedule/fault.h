// Faults of an order, and their pictures: a grid of lanes around the wrong node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/schedule/graph.h"

namespace weft::schedule {

// Entry of the graph of a rank.
struct Position {
  int rank = 0;
  int entry = 0;

  auto operator<=>(const Position&) const = default;
};

// Node that an order lacks, where it could be issued: before entry `before`, or at the end.
struct MissingNode {
  Entry entry;
  int before = 0;
};

struct Fault {
  std::string what;                   // sentence that names nodes
  std::string fix;                    // sentence without a full stop
  std::vector<Position> wrong;        // drawn as >node<
  std::vector<Position> beside = {};  // drawn as [node]: nodes that the wrong ones are judged by
  std::optional<MissingNode> missing = {};  // drawn as >node<, in the first graph
  std::vector<std::string> waits = {};      // lines; empty: the waits of the drawn nodes
};

// Picture of a fault: the grid, a line for each wait, and the fix. A row is a lane, of each rank if
// there are several graphs; columns are the issue order of each rank around the fault, with ... for
// nodes left out. At most 12 rows of 9 nodes in about 100 columns; long names are cut in the
// middle.
std::string draw(const Fault& fault, const std::vector<const Graph*>& graphs);

// Sentences of all faults; the first one has its picture below it.
std::vector<std::string> complaints_of(const std::vector<Fault>& faults,
                                       const std::vector<const Graph*>& graphs);

}  // namespace weft::schedule
