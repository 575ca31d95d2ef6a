#include "weft/exec/sim/measure.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace weft::exec::sim {
namespace {

using trace::Span;
using trace::SpanKind;

// Time by kind of work.
using Parts = std::array<std::int64_t, static_cast<std::size_t>(SpanKind::Host) + 1>;

std::int64_t& part(Parts& parts, SpanKind kind) { return parts[static_cast<std::size_t>(kind)]; }

std::int64_t total(const Parts& parts) {
  std::int64_t sum = 0;
  for (const std::int64_t ns : parts) sum += ns;
  return sum;
}

// Kind that took longest.
SpanKind main_kind(const Parts& parts) {
  if (total(parts) == 0) return SpanKind::Memory;
  return static_cast<SpanKind>(std::ranges::max_element(parts) - parts.begin());
}

// One execution of a node on one rank.
struct Work {
  const Span* span = nullptr;  // the node's span
  Parts ns{};                  // nanoseconds of its operations
  Parts count{};               // number of its operations
};
using Executions = std::map<std::pair<int, std::string>, Work>;  // by run and node

Executions executions_of(const trace::Timeline& timeline) {
  Executions executions;
  for (const Span& span : timeline.spans) {
    if (!trace::is_node(span)) continue;
    // Work that a host node left on another lane is a second span of that name; the host's span
    // counts.
    Work& work = executions[{span.run, span.node}];
    if (!work.span || span.kind == SpanKind::Host) work.span = &span;
  }
  for (const Span& span : timeline.spans) {
    if (trace::is_node(span)) continue;
    const auto found = executions.find({span.run, span.node});
    if (found == executions.end() || found->second.span->lane != span.lane) continue;
    part(found->second.ns, span.kind) += span.end_ns - span.begin_ns;
    ++part(found->second.count, span.kind);
  }
  return executions;
}

// Rest of a host node's span after the last node that it waited for.
std::int64_t own_ns(const Span& host, const Executions& executions) {
  std::int64_t from = host.begin_ns;
  for (const std::string& node : host.after) {
    const auto waited = executions.find({host.run, node});
    if (waited != executions.end()) from = std::max(from, waited->second.span->end_ns);
  }
  return std::max<std::int64_t>(host.end_ns - from, 0);
}

void measure_host(Executions& executions) {
  for (auto& [key, work] : executions) {
    if (work.span->kind != SpanKind::Host) continue;
    part(work.ns, SpanKind::Host) = own_ns(*work.span, executions);
  }
}

// Shortest time of the members, by operation: run, name, members.
class TracedOperations {
 public:
  void add(const Work& work) {
    if (work.span->operation.empty()) return;
    const auto [found, is_new] = shortest_ns_.try_emplace(key_of(*work.span), total(work.ns));
    if (!is_new) found->second = std::min(found->second, total(work.ns));
  }
  std::int64_t ns_of(const Work& work) const {
    return work.span->operation.empty() ? total(work.ns) : shortest_ns_.at(key_of(*work.span));
  }

 private:
  using Key = std::tuple<int, std::string, std::vector<int>>;
  static Key key_of(const Span& span) { return {span.run, span.operation, span.members}; }

  std::map<Key, std::int64_t> shortest_ns_;
};

double median_seconds(std::vector<std::int64_t> samples_ns) {
  std::ranges::sort(samples_ns);
  const std::size_t n = samples_ns.size();
  return static_cast<double>(samples_ns[(n - 1) / 2] + samples_ns[n / 2]) / 2e9;
}

// Measurements of a node, over all micro-batches.
struct Samples {
  std::vector<std::int64_t> ns;
  Parts parts{}, counts{};
};
using SamplesByNode = std::map<schedule::Node, Samples>;

SamplesByNode samples_of(const Executions& executions, const TracedOperations& operations) {
  SamplesByNode rows;
  for (const auto& [key, work] : executions) {
    schedule::Node node = schedule::parse_node(key.second);
    node.micro_batch = schedule::kNone;
    Samples& row = rows[node];
    row.ns.push_back(operations.ns_of(work));
    for (std::size_t i = 0; i < work.ns.size(); ++i) {
      row.parts[i] += work.ns[i];
      row.counts[i] += work.count[i];
    }
  }
  return rows;
}

std::map<int, SamplesByNode> samples_by_rank(std::span<const trace::Timeline> timelines) {
  std::vector<Executions> by_rank;
  TracedOperations operations;
  for (const trace::Timeline& timeline : timelines) {
    Executions& executions = by_rank.emplace_back(executions_of(timeline));
    measure_host(executions);
    for (const auto& [key, work] : executions) operations.add(work);
  }
  std::map<int, SamplesByNode> samples;
  for (std::size_t i = 0; i < by_rank.size(); ++i) {
    samples[timelines[i].rank] = samples_of(by_rank[i], operations);
  }
  return samples;
}

}  // namespace

CostTable measure(std::span<const trace::Timeline> timelines) {
  CostTable table;
  for (const auto& [rank, rows] : samples_by_rank(timelines)) {
    for (const auto& [node, row] : rows) {
      table.set(rank, node, {.seconds = median_seconds(row.ns), .kind = main_kind(row.parts)});
    }
  }
  return table;
}

std::map<std::pair<int, schedule::Node>, KindTimes> measure_kinds(
    std::span<const trace::Timeline> timelines) {
  std::map<std::pair<int, schedule::Node>, KindTimes> all;
  for (const auto& [rank, rows] : samples_by_rank(timelines)) {
    for (const auto& [node, row] : rows) {
      KindTimes& times = all[{rank, node}];
      times.seconds = median_seconds(row.ns);
      const auto whole = static_cast<double>(total(row.parts));
      const auto samples = static_cast<double>(row.ns.size());
      for (std::size_t i = 0; i < row.parts.size(); ++i) {
        if (whole > 0) times.share[i] = static_cast<double>(row.parts[i]) / whole;
        times.operations[i] = static_cast<double>(row.counts[i]) / samples;
      }
    }
  }
  return all;
}

CostTable complete(const CostTable& measured, const std::vector<const schedule::Graph*>& graphs) {
  CostTable table = measured;
  std::map<const schedule::Graph*, CostTable::Rows> rows_of_graph;
  const auto graph_of = [&](int rank) { return graphs.at(static_cast<std::size_t>(rank)); };
  for (const auto& [rank, rows] : measured.ranks()) {
    for (const schedule::Entry& entry : graph_of(rank)->entries) {
      if (table.find(rank, entry.node)) continue;
      table.set(rank, entry.node, {.seconds = 0, .kind = SpanKind::Memory});
    }
    rows_of_graph.try_emplace(graph_of(rank), table.ranks().at(rank));
  }
  for (int rank = 0; rank < std::ssize(graphs); ++rank) {
    const auto rows = rows_of_graph.find(graph_of(rank));
    if (table.ranks().contains(rank) || rows == rows_of_graph.end()) continue;
    for (const auto& [node, cost] : rows->second) table.set(rank, node, cost);
  }
  return table;
}

}  // namespace weft::exec::sim
