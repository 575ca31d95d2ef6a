// Cost rows: what every node of a rank costs, whatever its micro-batch.
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
  // Null where there is no row.
  const Cost* find(int rank, schedule::Node node) const;
  // The cost of every entry, for Step::cost. ConfigError naming every row that is missing.
  CostOf for_graphs(const std::vector<const schedule::Graph*>& graphs) const;

  using Rows = std::map<schedule::Node, Cost>;  // nodes without their micro-batch
  const std::map<int, Rows>& ranks() const { return ranks_; }

  bool operator==(const CostTable&) const = default;

 private:
  std::map<int, Rows> ranks_;
};

std::string print(const CostTable& table);
// ConfigError naming what is wrong with the text.
CostTable parse_costs(std::string_view text);

// Costs from traces of every rank, best of a plain run, where nothing runs beside anything else. A
// row is the median over micro-batches and runs of
//   a compute node: the sum of its operations (its span may contain waiting);
//   a host node: what is left of its span after the last of what it waited for;
//   a communication node: the shortest of its members' (the last to arrive did not wait for others;
//   no clock in common is needed).
CostTable measure(std::span<const trace::Timeline> timelines);

// What a row of measure() is made of, by kind of operation.
struct KindTimes {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(trace::SpanKind::Host) + 1;

  double seconds = 0;                       // as the row has it
  std::array<double, kKinds> share{};       // of those seconds
  std::array<double, kKinds> operations{};  // in one execution
  double of(trace::SpanKind kind) const { return seconds * share[static_cast<std::size_t>(kind)]; }
};
// By rank and row.
std::map<std::pair<int, schedule::Node>, KindTimes> measure_kinds(
    std::span<const trace::Timeline> timelines);

// What was measured, with a row for every entry of the graphs, by rank: a node that left no span
// had nothing to do, and a rank of which nothing was measured costs what one with the same graph
// does.
CostTable complete(const CostTable& measured, const std::vector<const schedule::Graph*>& graphs);

}  // namespace weft::exec::sim
