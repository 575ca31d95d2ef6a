#include "weft/plan/hardware/slow_down.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/trace/exposure/intervals.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using trace::Span;

constexpr double kLeastBeside = 0.05;

// One class of work in both orders.
struct TwoOrders {
  double apart = 0, beside = 0;      // seconds of the same nodes
  double all_ns = 0, beside_ns = 0;  // in the second order: in total, and beside the other class

  double slower() const {
    if (apart <= 0 || beside_ns < kLeastBeside * all_ns) return 0;
    return std::clamp((beside / apart - 1) * all_ns / beside_ns, 0.0, 1.0);
  }
};

// Work of one rank in the second order.
class RankInBoth {
 public:
  RankInBoth(const trace::Timeline& timeline,
             const sim::CostTable& apart,
             const sim::CostTable& beside)
      : rank_(timeline.rank), apart_(apart), beside_(beside) {
    for (const Span& span : timeline.spans) add(span);
  }

  void add_to(TwoOrders& compute, TwoOrders& communication) {
    compute.apart += compute_.apart;
    compute.beside += compute_.beside;
    communication.apart += communication_.apart;
    communication.beside += communication_.beside;
    const trace::Intervals computing = trace::unite(std::move(computing_));
    const trace::Intervals sending = trace::unite(std::move(sending_));
    const std::int64_t all = trace::length(computing);
    const double both = base::number(all - trace::length(trace::subtract(computing, sending)));
    compute.all_ns += base::number(all);
    communication.all_ns += base::number(trace::length(sending));
    compute.beside_ns += both;
    communication.beside_ns += both;
  }

 private:
  void add(const Span& span) {
    const bool computes = span.lane == trace::kComputeLane;
    if (!trace::is_node(span)) {
      if (computes) computing_.push_back({.begin = span.begin_ns, .end = span.end_ns});
      return;
    }
    if (span.kind == trace::SpanKind::Host) return;
    const bool communicates = !span.operation.empty();
    const schedule::Node node = schedule::parse_node(span.node);
    const sim::Cost* now = beside_.find(rank_, node);
    if (now == nullptr || (!computes && !communicates)) return;
    if (communicates) {
      // Excludes waits for other ranks.
      const std::int64_t own_ns = std::llround(now->seconds * 1e9);
      sending_.push_back(
          {.begin = std::max(span.begin_ns, span.end_ns - own_ns), .end = span.end_ns});
    }
    const sim::Cost* then = apart_.find(rank_, node);
    if (then == nullptr) return;
    TwoOrders& orders = computes ? compute_ : communication_;
    orders.apart += then->seconds;
    orders.beside += now->seconds;
  }

  const int rank_;
  const sim::CostTable &apart_, &beside_;
  TwoOrders compute_, communication_;
  trace::Intervals computing_, sending_;
};

}  // namespace

SlowDown slow_down(const std::vector<trace::Timeline>& apart,
                   const std::vector<trace::Timeline>& beside) {
  const sim::CostTable then = sim::measure(apart), now = sim::measure(beside);
  TwoOrders compute, communication;
  for (const trace::Timeline& timeline : beside) {
    RankInBoth(timeline, then, now).add_to(compute, communication);
  }
  return {.beside_communication = compute.slower(), .beside_compute = communication.slower()};
}

double slower_compute(const std::vector<trace::Timeline>& apart,
                      const std::vector<trace::Timeline>& beside) {
  const sim::CostTable then = sim::measure(apart), now = sim::measure(beside);
  TwoOrders compute{.all_ns = 1, .beside_ns = 1};
  for (const auto& [rank, rows] : now.ranks()) {
    for (const auto& [node, cost] : rows) {
      const sim::Cost* before = then.find(rank, node);
      const bool computes = cost.kind != trace::SpanKind::Communication &&
                            cost.kind != trace::SpanKind::Host &&
                            cost.kind != trace::SpanKind::Copy;
      if (before == nullptr || !computes) continue;
      compute.apart += before->seconds;
      compute.beside += cost.seconds;
    }
  }
  return compute.slower();
}

}  // namespace weft::plan
