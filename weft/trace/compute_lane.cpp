#include "weft/trace/compute_lane.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace weft::trace {
namespace {

// End times of a run's nodes by name; for a host node, the earliest possible end.
class Ends {
 public:
  explicit Ends(const RunSpans& spans) {
    RunSpans host;
    for (const Span* span : spans) {
      if (!is_node(*span)) continue;
      if (span->lane == kHostLane) {
        host.push_back(span);
      } else {
        ends_[span->name] = span->end_ns;
      }
    }
    std::ranges::stable_sort(host, {}, &Span::begin_ns);
    std::int64_t before = kNever;  // host nodes run one after the other
    for (const Span* span : host) ends_[span->name] = before = latest(*span, before);
  }

  // End of the last node that `node` waits for. Nodes without work leave no span and are skipped.
  std::int64_t latest(const Span& node, std::int64_t at_least) const {
    for (const std::string& name : node.after) {
      const auto found = ends_.find(name);
      if (found != ends_.end()) at_least = std::max(at_least, found->second);
    }
    return at_least;
  }

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

 private:
  std::map<std::string_view, std::int64_t> ends_;
};

}  // namespace

ComputeLane::ComputeLane(const RunSpans& of_run) {
  RunSpans spans;
  for (const Span* span : of_run) {
    if (span->lane != kComputeLane) continue;
    if (is_node(*span)) {
      spans.push_back(span);
      continue;
    }
    if (span->kind == SpanKind::Communication && span->name == kSlowed) {
      slowed_.push_back({span->begin_ns, span->end_ns});
      continue;
    }
    busy_.push_back({span->begin_ns, span->end_ns});
    if (span->kind == SpanKind::Gemm || span->kind == SpanKind::Attention) {
      gemm_.push_back({span->begin_ns, span->end_ns});
    }
  }
  busy_ = unite(std::move(busy_));
  gemm_ = unite(std::move(gemm_));
  slowed_ = subtract(unite(std::move(slowed_)), busy_);
  std::ranges::sort(spans, {}, [](const Span* span) {
    return std::pair(span->begin_ns, span->end_ns);
  });
  const Ends ends(of_run);
  std::int64_t before = Ends::kNever;
  for (const Span* span : spans) {
    nodes_.push_back({.begin = span->begin_ns,
                      .end = span->end_ns,
                      .ready = std::min(ends.latest(*span, before), span->begin_ns)});
    before = span->end_ns;
  }
}

ComputeLane::ComputeLane(Intervals busy, Intervals gemm, std::vector<Node> nodes)
    : busy_(std::move(busy)), gemm_(std::move(gemm)), nodes_(std::move(nodes)) {}

bool ComputeLane::host_is_late(std::int64_t moment) const {
  const auto node =
      std::ranges::partition_point(nodes_, [&](const Node& one) { return one.end <= moment; });
  return node != nodes_.end() && node->ready <= moment;
}

bool ComputeLane::is_slowed(std::int64_t moment) const {
  const auto part =
      std::ranges::partition_point(slowed_, [&](const Interval& one) { return one.end <= moment; });
  return part != slowed_.end() && part->begin <= moment;
}

std::vector<std::int64_t> ComputeLane::changes() const {
  std::vector<std::int64_t> moments;
  for (const Interval& part : slowed_) moments.insert(moments.end(), {part.begin, part.end});
  for (const Node& node : nodes_) moments.insert(moments.end(), {node.ready, node.begin, node.end});
  return moments;
}

}  // namespace weft::trace
