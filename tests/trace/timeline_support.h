// Handwritten timelines, in milliseconds.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "weft/trace/exposure/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

enum class Cover { None, Possible };

// Timeline of one rank, node by node.
class Hand {
 public:
  explicit Hand(int rank)
      : timeline_{.rank = rank, .label = "[R" + std::to_string(rank) + "]", .spans = {}} {}

  // The nodes that follow are of this run.
  Hand& run(int run) {
    run_ = run;
    return *this;
  }

  // A node without operations; see operation().
  Hand& node(const std::string& lane,
             const std::string& name,
             double begin,
             double end,
             std::vector<std::string> after = {}) {
    Span& span = add(lane, name, begin, end);
    span.kind = lane == kHostLane ? SpanKind::Host : SpanKind::Node;
    span.after = std::move(after);
    return *this;
  }

  // An operation of the last node.
  Hand& operation(SpanKind kind, double begin, double end) {
    const std::string node = timeline_.spans.back().node, lane = timeline_.spans.back().lane;
    Span& span = add(lane, "operation", begin, end);
    span.node = node;
    span.kind = kind;
    return *this;
  }

  // A compute node that is one operation.
  Hand& compute(const std::string& name,
                double begin,
                double end,
                std::vector<std::string> after = {},
                SpanKind kind = SpanKind::Gemm) {
    node(std::string(kComputeLane), name, begin, end, std::move(after));
    return operation(kind, begin, end);
  }

  Hand& communication(const std::string& lane,
                      const std::string& name,
                      double begin,
                      double end,
                      Cover cover,
                      std::vector<int> members = {}) {
    node(lane, name, begin, end);
    Span& span = timeline_.spans.back();
    span.coverable = cover == Cover::Possible;
    span.operation = name;
    span.members = std::move(members);
    return operation(SpanKind::Communication, begin, end);
  }

  // The last node added.
  Span& last() {
    for (std::size_t i = timeline_.spans.size(); i-- > 0;) {
      if (is_node(timeline_.spans[i])) return timeline_.spans[i];
    }
    return timeline_.spans.front();
  }

  operator Timeline() const { return timeline_; }

 private:
  static std::int64_t ns(double ms) { return kLate + std::llround(ms * 1e6); }

  Span& add(const std::string& lane, const std::string& name, double begin, double end) {
    return timeline_.spans.emplace_back(Span{.name = name,
                                             .node = name,
                                             .lane = lane,
                                             .run = run_,
                                             .begin_ns = ns(begin),
                                             .end_ns = ns(end)});
  }

  static constexpr std::int64_t kLate = 9'000'000'000'000;  // a steady clock starts anywhere

  Timeline timeline_;
  int run_ = 0;
};

// From and to in milliseconds after the first span.
inline Interval part_of(const std::vector<Timeline>& timelines, double from, double to) {
  const std::int64_t start = shown_time(timelines).begin;
  return {start + std::llround(from * 1e6), start + std::llround(to * 1e6)};
}

}  // namespace weft::trace
