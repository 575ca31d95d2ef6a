// Cost table: the cost of each node of a rank, equal for all micro-batches.
//
// A row's name is the node's text without the micro-batch: `3F.dispatch`, `reduce.dense`. As JSON:
//
//   {"ranks": [{"rank": 0, "costs": {"3F.dispatch": {"seconds": 0.0012, "kind":
//   "communication"}}}]}
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "weft/exec/sim/step.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

class CostTable {
 public:
  void set(int rank, schedule::Node node, Cost cost);
  // nullptr: no row.
  const Cost* find(int rank, schedule::Node node) const;
  // Cost of every entry, for SimulatedStep::cost. Throws ConfigError naming every missing row.
  CostOf for_graphs(const std::vector<const schedule::Graph*>& graphs) const;

  using Rows = std::map<schedule::Node, Cost>;  // nodes without micro-batch
  const std::map<int, Rows>& ranks() const { return ranks_; }

  bool operator==(const CostTable&) const = default;

 private:
  std::map<int, Rows> ranks_;
};

std::string print(const CostTable& table);
// Throws ConfigError naming the error in the text.
CostTable parse_costs(std::string_view text);

}  // namespace weft::exec::sim
