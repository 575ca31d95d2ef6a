// Cost table: the cost of each node of a rank, equal for all micro-batches.
//
// A row's name is the node's text without the micro-batch: `3F.dispatch`, `reduce.dense`. As JSON:
//
//   {"ranks": [{"rank": 0, "costs": {"3F.dispatch": {"seconds": 0.0012, "kind":
//   "communication"}}}]}
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

// Costs from traces of every rank, preferably of a plain run without overlap. A row is the median
// over micro-batches and runs of
//   a compute node: the sum of its operations (its span may contain waiting);
//   a host node: the rest of its span after the last node that it waited for;
//   a communication node: the shortest of its members' times (the last to arrive waited for no
//   other; clocks need not be shared).
CostTable measure(std::span<const trace::Timeline> timelines);

// Composition of a row of measure(), by kind of operation.
struct KindTimes {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(trace::SpanKind::Host) + 1;

  double seconds = 0;                       // as in the row
  std::array<double, kKinds> share{};       // fraction of those seconds
  std::array<double, kKinds> operations{};  // per execution
  double of(trace::SpanKind kind) const { return seconds * share[static_cast<std::size_t>(kind)]; }
};
// By rank and row.
std::map<std::pair<int, schedule::Node>, KindTimes> measure_kinds(
    std::span<const trace::Timeline> timelines);

// Completes a measured table to a row for every entry of the graphs, by rank. A node without a span
// had no work: cost 0. A rank without measurements costs as much as one with an equal graph.
CostTable complete(const CostTable& measured, const std::vector<const schedule::Graph*>& graphs);

}  // namespace weft::exec::sim
