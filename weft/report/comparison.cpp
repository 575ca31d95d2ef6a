#include "weft/report/comparison.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/plan/hardware/calibration_text.h"
#include "weft/schedule/plan.h"

namespace weft::report {
namespace {

namespace sim = exec::sim;
using schedule::Node;

// Rate that makes the other parts of the nominal costs free.
constexpr double kFree = 1e30;

// Measured and predicted node costs of a run.
class NodeCosts {
 public:
  NodeCosts(const config::Config& run, const std::vector<trace::Timeline>& traced)
      : run_(run),
        grid_(derive::layout_of(run)),
        plans_(schedule::plan_step(run, grid_)),
        measured_(sim::measure(traced)) {
    for (const auto& [rank, rows] : measured_.ranks()) {
      if (rank < grid_.world()) continue;
      throw base::ConfigError(
          base::text("the trace has a rank {}, and the run has {}", rank, grid_.world()));
    }
    for (const schedule::RankPlan& plan : plans_) {
      for (const schedule::Entry& entry : plan.training.entries) {
        Node node = entry.node;
        node.micro_batch = schedule::kNone;
        ++counts_[{plan.anatomy.pp_rank, node}];
      }
    }
  }

  struct NodeTime {
    Node node;
    double count = 0;  // executions per step
    double measured_seconds = 0, predicted_seconds = 0;
    bool is_message = false;
  };

  std::vector<NodeTime> at(const plan::NominalRates& rates) const {
    return beside(plan::nominal_costs(run_, grid_, plans_, rates));
  }

  // Times on every traced rank; skips nodes outside of its graph.
  std::vector<NodeTime> beside(const sim::CostTable& nominal) const {
    std::vector<NodeTime> all;
    for (const auto& [rank, rows] : measured_.ranks()) {
      const int stage = grid_.coordinate(rank).pp;
      for (const auto& [node, cost] : rows) {
        const sim::Cost* predicted = nominal.find(stage, node);
        const auto count = counts_.find({stage, node});
        if (predicted == nullptr || count == counts_.end()) continue;
        all.push_back({.node = node,
                       .count = count->second,
                       .measured_seconds = cost.seconds,
                       .predicted_seconds = predicted->seconds,
                       .is_message = predicted->kind == trace::SpanKind::Communication});
      }
    }
    return all;
  }

  double predicted_step_ms(const plan::NominalRates& rates) const {
    return plan::simulate_nominal(run_, grid_, plans_, rates).step_seconds() * 1e3;
  }

  double ranks() const { return static_cast<double>(measured_.ranks().size()); }

 private:
  const config::Config& run_;
  grid::Grid grid_;
  std::vector<schedule::RankPlan> plans_;
  sim::CostTable measured_;
  std::map<std::pair<int, Node>, double> counts_;  // by stage
};

// Least-squares factors of `a` and `b` that sum to `to`, none negative.
struct TwoFactors {
  double a = 0, b = 0;
};

TwoFactors fit_two(const std::vector<NodeCosts::NodeTime>& a,
                   const std::vector<NodeCosts::NodeTime>& b) {
  double aa = 0, ab = 0, bb = 0, at = 0, bt = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_message) continue;
    const double x = a[i].count * a[i].predicted_seconds, y = b[i].count * b[i].predicted_seconds;
    const double t = a[i].count * a[i].measured_seconds;
    aa += x * x, ab += x * y, bb += y * y, at += x * t, bt += y * t;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-12 * aa * bb) {
    const TwoFactors both{.a = (at * bb - bt * ab) / determinant,
                          .b = (bt * aa - at * ab) / determinant};
    if (both.a > 0 && both.b > 0) return both;
  }
  return aa > 0 && at * at * bb >= bt * bt * aa ? TwoFactors{.a = at / aa}
                                                : TwoFactors{.b = bb > 0 ? bt / bb : 0};
}

// Measured over predicted time of messages.
double message_factor(const std::vector<NodeCosts::NodeTime>& nodes) {
  double measured = 0, predicted = 0;
  for (const NodeCosts::NodeTime& node : nodes) {
    if (!node.is_message) continue;
    measured += node.count * node.measured_seconds;
    predicted += node.count * node.predicted_seconds;
  }
  return measured > 0 && predicted > 0 ? measured / predicted : 1;
}

plan::NominalRates fitted_rates(const NodeCosts& costs) {
  plan::NominalRates rates, only_flops = rates, only_memory = rates;
  only_flops.memory_bytes_per_second = kFree;
  only_memory.flops_per_second = kFree;
  const auto flops = costs.at(only_flops);
  const TwoFactors factors = fit_two(flops, costs.at(only_memory));
  const double messages = message_factor(flops);
  rates.flops_per_second = factors.a > 0 ? rates.flops_per_second / factors.a : kFree;
  rates.memory_bytes_per_second = factors.b > 0 ? rates.memory_bytes_per_second / factors.b : kFree;
  rates.link_bytes_per_second /= messages;
  rates.network_bytes_per_second /= messages;
  rates.link_latency_seconds *= messages;
  return rates;
}

std::string rate_text(double per_second, const char* unit) {
  if (per_second >= kFree) return "free";
  return base::text("{:.3g} {}", per_second * 1e-9, unit);
}

std::string fitted_text(const plan::NominalRates& rates, const config::Config& run) {
  const grid::Fabric fabric = derive::fabric_of(run);
  return base::text(
      "fitted to this run: products {}, memory {}, links {}",
      rate_text(rates.flops_per_second, "GFLOP/s"),
      rate_text(rates.memory_bytes_per_second, "GB/s"),
      fabric.is_free() ? rate_text(rates.link_bytes_per_second, "GB/s") : grid::describe(fabric));
}

std::string one_line(const std::string& lines) {
  std::string line{base::trim(lines)};
  for (std::size_t at = line.find('\n'); at != std::string::npos; at = line.find('\n')) {
    line.replace(at, 1, "; ");
  }
  return line;
}

using Rows = std::map<Node, Comparison::Row>;

std::vector<Comparison::Row> rows_of(Rows rows) {
  std::vector<Comparison::Row> all;
  for (auto& [node, row] : rows) {
    row.name = schedule::print(node);
    if (row.measured_ms > 0 || row.predicted_ms > 0) all.push_back(std::move(row));
  }
  return all;
}

// Node without layer: "F.experts" for "3F.experts#1".
Node piece_of(Node node) {
  node.layer = node.chunk = node.slice = schedule::kNone;
  return node;
}

}  // namespace

PredictedRun compare(const config::Config& run,
                     const std::vector<trace::Timeline>& traced,
                     double step_ms,
                     const std::optional<plan::Calibration>& calibration) {
  const NodeCosts costs(run, traced);
  const bool is_known = derive::gpu_facts(run.hardware).tflops.has_value();
  PredictedRun result{.comparison = {},
                      .rates = is_known ? plan::rates_of(run.hardware) : fitted_rates(costs)};
  Comparison& comparison = result.comparison;
  std::vector<NodeCosts::NodeTime> times;
  comparison.step = {.name = "step", .measured_ms = step_ms, .predicted_ms = 0};
  if (calibration) {
    const plan::CalibratedStep step = plan::calibrated_step(run, *calibration);
    comparison.costs = "by the calibration: " + one_line(plan::describe(calibration->rates));
    comparison.step.predicted_ms = step.seconds * 1e3;
    times = costs.beside(step.costs);
  } else {
    comparison.costs = (is_known ? "as advertised: " + plan::describe(result.rates)
                                 : fitted_text(result.rates, run)) +
                       "; no calibration (--calibration)";
    comparison.step.predicted_ms = costs.predicted_step_ms(result.rates);
    times = costs.at(result.rates);
  }
  Rows pieces, nodes;
  std::map<Node, double> executed;  // number of ranks that ran the node
  for (const NodeCosts::NodeTime& time : times) ++executed[time.node];
  for (const NodeCosts::NodeTime& time : times) {
    Comparison::Row& piece = pieces[piece_of(time.node)];
    piece.measured_ms += time.count * time.measured_seconds * 1e3 / costs.ranks();
    piece.predicted_ms += time.count * time.predicted_seconds * 1e3 / costs.ranks();
    Comparison::Row& node = nodes[time.node];
    node.measured_ms += time.measured_seconds * 1e3 / executed[time.node];
    node.predicted_ms += time.predicted_seconds * 1e3 / executed[time.node];
  }
  comparison.pieces = rows_of(std::move(pieces));
  std::ranges::stable_sort(comparison.pieces, std::greater<>{}, &Comparison::Row::measured_ms);
  comparison.nodes = rows_of(std::move(nodes));
  return result;
}

}  // namespace weft::report
