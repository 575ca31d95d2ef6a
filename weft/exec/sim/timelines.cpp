#include "weft/exec/sim/timelines.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/exec/sim/dependencies.h"
#include "weft/exec/sim/operations.h"
#include "weft/schedule/meeting.h"

namespace weft::exec::sim {
namespace {

using schedule::kNone;
using schedule::Lane;
using trace::Span;
using trace::SpanKind;

// Waits on other lanes: the named ones, and the last host entry, unless the lane is already past
// it.
std::vector<int> waits_between_lanes(const schedule::Graph& graph,
                                     const Dependencies& dependencies,
                                     int entry) {
  std::vector<int> waits;
  const auto& entries = graph.entries;
  const schedule::Entry& mine = entries[static_cast<std::size_t>(entry)];
  for (const int wait : mine.waits) {
    if (entries[static_cast<std::size_t>(wait)].lane != mine.lane) waits.push_back(wait);
  }
  const int host = dependencies.hold_before(entry), before = dependencies.lane_before(entry);
  if (host == kNone || mine.lane == entries[static_cast<std::size_t>(host)].lane) return waits;
  if (mine.lane == Lane::Host) return waits;
  const bool is_past = before != kNone && dependencies.hold_before(before) == host;
  if (!is_past && std::ranges::find(waits, host) == waits.end()) waits.push_back(host);
  return waits;
}

std::int64_t bytes_sent(const SimulatedStep& step, const Operation& operation, int rank) {
  if (!step.wire) return 0;
  std::int64_t bytes = 0;
  for (const auto& transfer : step.wire->transfers(operation.meeting, operation.members)) {
    if (transfer.from == rank) bytes += transfer.bytes;
  }
  return bytes;
}

// Writes the spans of one rank.
class Writer {
 public:
  Writer(const SimulatedStep& step,
         const Operations& operations,
         const Result& result,
         const Window& window,
         int rank)
      : step_(step),
        operations_(operations),
        intervals_(result.entries[static_cast<std::size_t>(rank)]),
        window_(window),
        rank_(rank),
        graph_(*step.graphs[static_cast<std::size_t>(rank)]),
        dependencies_(graph_),
        order_(graph_) {}

  // Order of exec/real: host first, then lane by lane.
  std::vector<Span> write() {
    write_lane(Lane::Host);
    for (int lane = 0; lane < schedule::kLanes; ++lane) {
      if (static_cast<Lane>(lane) != Lane::Host) write_lane(static_cast<Lane>(lane));
    }
    return std::move(spans_);
  }

 private:
  void write_lane(Lane lane) {
    for (int i = 0; i < dependencies_.size(); ++i) {
      if (entry_at(i).lane != lane) continue;
      if (!window_.overlaps(intervals_[static_cast<std::size_t>(i)])) continue;
      spans_.push_back(node_span(i));
      if (lane != Lane::Host) spans_.push_back(operation_span(i, spans_.back()));
    }
  }

  Span node_span(int i) const {
    const schedule::Entry& entry = entry_at(i);
    const Interval& interval = intervals_[static_cast<std::size_t>(i)];
    Span span{.name = schedule::print(entry.node),
              .node = schedule::print(entry.node),
              .lane = std::string(schedule::word(entry.lane)),
              .kind = entry.lane == Lane::Host ? SpanKind::Host : SpanKind::Node,
              .begin_ns = interval.begin_ns,
              .end_ns = interval.end_ns,
              .layer = entry.node.layer,
              .micro_batch = entry.node.micro_batch};
    for (const int wait : waits_between_lanes(graph_, dependencies_, i)) {
      span.after.push_back(schedule::print(entry_at(wait).node));
    }
    if (schedule::is_copy(entry.lane)) span.coverable = order_.runs_beside(i, Lane::Compute);
    if (schedule::is_meeting(entry)) describe_operation(i, span);
    return span;
  }

  void describe_operation(int i, Span& span) const {
    span.coverable = order_.runs_beside(i, Lane::Compute);
    span.operation = schedule::print(schedule::meeting_of(entry_at(i).node));
    span.members = {rank_};
    const int index = operations_.of(rank_, i);
    if (index == kNone) return;
    span.members = operations_[index].members;
    std::ranges::sort(span.members);
    span.bytes = bytes_sent(step_, operations_[index], rank_);
  }

  // If an operation begins later than its node, the node waits for the host (trace/compute_lane.h).
  Span operation_span(int i, const Span& node) const {
    const Cost cost = step_.cost(rank_, i);
    const SpanKind kind = schedule::is_meeting(entry_at(i)) ? SpanKind::Communication : cost.kind;
    const bool waits = entry_at(i).lane == Lane::Compute;
    const auto length = static_cast<double>(node.end_ns - node.begin_ns);
    const std::int64_t late = waits ? std::llround(cost.launch_share * length) : 0;
    return {.name = std::string(trace::word(kind)),
            .node = node.node,
            .lane = node.lane,
            .kind = kind,
            .begin_ns = node.begin_ns + late,
            .end_ns = node.end_ns};
  }

  const schedule::Entry& entry_at(int i) const {
    return graph_.entries[static_cast<std::size_t>(i)];
  }

  const SimulatedStep& step_;
  const Operations& operations_;
  const std::vector<Interval>& intervals_;
  const Window window_;
  const int rank_;
  const schedule::Graph& graph_;
  const Dependencies dependencies_;
  const schedule::Order order_;
  std::vector<Span> spans_;
};

}  // namespace

std::vector<trace::Timeline> timelines_of(const SimulatedStep& step,
                                          const Result& result,
                                          const Window& window) {
  const Operations operations(step);
  std::vector<trace::Timeline> timelines;
  for (int rank = 0; static_cast<std::size_t>(rank) < step.graphs.size(); ++rank) {
    timelines.push_back({.rank = rank,
                         .label = base::text("rank {}", rank),
                         .spans = Writer(step, operations, result, window, rank).write()});
  }
  return timelines;
}

}  // namespace weft::exec::sim
