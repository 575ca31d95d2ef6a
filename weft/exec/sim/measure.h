// Cost tables from traces.
#pragma once

#include <array>
#include <map>
#include <span>
#include <utility>

#include "weft/exec/sim/costs.h"
#include "weft/trace/span.h"

namespace weft::exec::sim {

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
