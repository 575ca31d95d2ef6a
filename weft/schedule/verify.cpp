#include "weft/schedule/verify.h"

#include <algorithm>
#include <optional>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/schedule/census.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/node_index.h"

namespace weft::schedule {
namespace {

using base::at;

Position entry_at(int entry) { return {.rank = 0, .entry = entry}; }

std::vector<Fault> check_waits(const Graph& graph) {
  std::vector<Fault> faults;
  const int size = static_cast<int>(graph.entries.size());
  for (int i = 0; i < size; ++i) {
    for (const int wait : graph.entries[at(i)].waits) {
      if (wait >= 0 && wait < i) continue;
      Fault fault{
          .what = base::text("{} waits for entry {}, which is not issued before it (entry {})",
                             print(graph.entries[at(i)].node),
                             wait,
                             i),
          .fix = "wait only for nodes that are issued before",
          .wrong = {entry_at(i)}};
      if (wait > i && wait < size) fault.beside = {entry_at(wait)};
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

// Missing node behind all that it needs, or behind the same node of the micro-batch before.
Fault missing(const Graph& graph,
              const Anatomy& anatomy,
              const NodeIndex& index,
              const Node& node,
              const std::vector<Node>& needs) {
  MissingNode missing{.entry = {.node = node, .lane = lane_of(anatomy, node), .waits = {}}};
  Node previous = node;
  if (needs.empty()) --previous.micro_batch;
  missing.before = index.find(previous).value_or(-1) + 1;
  std::string waits;
  for (const Node& need : needs) {
    const std::optional<int> found = index.find(need);
    if (!found) continue;
    missing.before = std::max(missing.before, *found + 1);
    if (graph.entries[at(*found)].lane != missing.entry.lane) waits += ' ' + print(need);
  }
  if (!waits.empty()) waits.insert(0, " <");
  return {.what = base::text("{} is missing", print(node)),
          .fix = base::text("issue it, there or later, by the line '{} {}{}'",
                            word(missing.entry.lane),
                            print(node),
                            waits),
          .wrong = {},
          .missing = std::move(missing)};
}

// Index of every node, with faults: missing, repeated and unknown nodes.
NodeIndex index_nodes(const Graph& graph,
                      const Anatomy& anatomy,
                      int micro_batches,
                      StepKind kind,
                      std::vector<Fault>& faults) {
  NodeIndex index;
  const int size = static_cast<int>(graph.entries.size());
  for (int i = 0; i < size; ++i) {
    const Node& node = graph.entries[at(i)].node;
    if (index.add(node, i)) continue;
    faults.push_back({.what = base::text("{} is issued twice", print(node)),
                      .fix = "remove one of the two",
                      .wrong = {entry_at(i)},
                      .beside = {entry_at(*index.find(node))}});
  }
  NodeIndex expected;
  for (const Node& node : all_nodes(anatomy, micro_batches, kind)) {
    expected.add(node, 0);
    if (index.contains(node)) continue;
    const std::vector<Node> needs = required(anatomy, node, micro_batches, kind);
    faults.push_back(missing(graph, anatomy, index, node, needs));
  }
  for (int i = 0; i < size; ++i) {
    const Node& node = graph.entries[at(i)].node;
    if (index.find(node) != i || expected.contains(node)) continue;
    faults.push_back({.what = base::text("{} does not belong to this step", print(node)),
                      .fix = "remove it, and all waits for it",
                      .wrong = {entry_at(i)}});
  }
  return index;
}

void check_lanes(const Graph& graph, const Anatomy& anatomy, std::vector<Fault>& faults) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Entry& entry = graph.entries[i];
    const Lane lane = lane_of(anatomy, entry.node);
    if (entry.lane == lane) continue;
    faults.push_back({.what = base::text("{} is on lane {}, but its lane is {}",
                                         print(entry.node),
                                         word(entry.lane),
                                         word(lane)),
                      .fix = base::text("issue it on lane {}", word(lane)),
                      .wrong = {entry_at(static_cast<int>(i))}});
  }
}

Fault too_early(const Graph& graph, int entry, int need) {
  const Entry &early = graph.entries[at(entry)], &needed = graph.entries[at(need)];
  const std::string node = print(early.node), other = print(needed.node);
  std::string what = base::text("{} may start before {} is over", node, other);
  if (overwrites_memory_of(early.node, needed.node)) {
    what += base::text(": it overwrites memory that {} uses", other);
  }
  std::string fix;
  if (need > entry) fix = base::text("issue {} before {}", other, node);
  if (early.lane != needed.lane) {
    fix += base::text("{}let {} wait for {}", fix.empty() ? "" : ", and ", node, other);
  }
  return {.what = std::move(what),
          .fix = std::move(fix),
          .wrong = {entry_at(entry)},
          .beside = {entry_at(need)}};
}

void check_dependencies(const Graph& graph,
                        const Anatomy& anatomy,
                        int micro_batches,
                        StepKind kind,
                        const NodeIndex& index,
                        std::vector<Fault>& faults) {
  const Order order(graph);
  const int size = static_cast<int>(graph.entries.size());
  for (int i = 0; i < size; ++i) {
    for (const Node& need : required(anatomy, graph.entries[at(i)].node, micro_batches, kind)) {
      const std::optional<int> found = index.find(need);
      if (!found) continue;  // already reported as missing
      const bool ordered = *found < i && order.before(*found, i);
      if (!ordered) faults.push_back(too_early(graph, i, *found));
    }
  }
}

}  // namespace

std::vector<Fault> verify(const Graph& graph,
                          const Anatomy& anatomy,
                          int micro_batches,
                          StepKind kind) {
  std::vector<Fault> faults = check_waits(graph);
  if (!faults.empty()) return faults;
  const NodeIndex index = index_nodes(graph, anatomy, micro_batches, kind, faults);
  if (!faults.empty()) return faults;
  check_lanes(graph, anatomy, faults);
  check_dependencies(graph, anatomy, micro_batches, kind, index, faults);
  return faults;
}

}  // namespace weft::schedule
