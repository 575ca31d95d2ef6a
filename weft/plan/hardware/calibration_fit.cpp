#include "weft/plan/hardware/calibration_fit.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/measure.h"
#include "weft/plan/cost/calibrated_node.h"
#include "weft/plan/hardware/rate_fit.h"
#include "weft/plan/hardware/slow_down.h"
#include "weft/plan/hardware/waking.h"
#include "weft/plan/price/simulated_step.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using schedule::Direction;
using schedule::Entry;
using schedule::Node;
using schedule::RankPlan;
using trace::SpanKind;

// Measured times of a node by class of operation.
struct MeasuredNode {
  double seconds = 0;
  double product = 0, attention = 0;  // parts of `seconds`
  double memory_calls = 0;
};

// Means over the ranks of a stage. A node without a span had nothing to do.
class MeasuredNodes {
 public:
  MeasuredNodes(const grid::Grid& grid, const std::vector<trace::Timeline>& timelines) {
    std::map<std::pair<int, Node>, double> ranks;
    for (const auto& [place, times] : sim::measure_kinds(timelines)) {
      const std::pair<int, Node> at_stage{grid.coordinate(place.first).pp, place.second};
      MeasuredNode& node = nodes_[at_stage];
      ++ranks[at_stage];
      node.seconds += times.seconds;
      node.product += times.of(SpanKind::Gemm);
      node.attention += times.of(SpanKind::Attention);
      node.memory_calls += calls(times, SpanKind::Memory) + calls(times, SpanKind::Copy);
    }
    for (auto& [place, node] : nodes_) {
      const double count = ranks.at(place);
      for (double* each : {&node.seconds, &node.product, &node.attention, &node.memory_calls}) {
        *each /= count;
      }
    }
  }

  MeasuredNode at(int pp_rank, Node node) const {
    node.micro_batch = schedule::kNone;
    const auto found = nodes_.find({pp_rank, node});
    return found == nodes_.end() ? MeasuredNode{} : found->second;
  }

 private:
  static double calls(const sim::KindTimes& times, SpanKind kind) {
    return times.operations[static_cast<std::size_t>(kind)];
  }

  std::map<std::pair<int, Node>, MeasuredNode> nodes_;
};

// Sum over all nodes of one kind.
struct KindSum {
  Direction direction = Direction::None;
  NodeWork work;
  double product = 0, attention = 0, memory = 0, rest = 0;  // seconds
  double memory_calls = 0;
  double nodes = 0;

  // Time of a class without work in the node counts towards the classes with work.
  void add(const NodeWork& of_node, const MeasuredNode& measured) {
    work += of_node;
    memory_calls += measured.memory_calls;
    ++nodes;
    const bool computes = of_node.product_flops > 0 || of_node.memory_bytes > 0;
    if (!computes) {
      rest += measured.seconds;
      return;
    }
    double left = measured.seconds;
    if (of_node.attention_flops > 0) {
      attention += measured.attention;
      left -= measured.attention;
    }
    if (of_node.product_flops > 0) {
      const double own = of_node.memory_bytes > 0 ? measured.product : left;
      product += own;
      left -= own;
    }
    memory += left;
  }
};
using KindSums = std::map<std::string, KindSum>;

double over(double one, double other) { return other > 0 ? one / other : 0; }

MachineRates fit_rates(const KindSums& kinds) {
  std::vector<FitRow> products, memory, links;
  double forward = 0, forward_flops = 0, backward = 0, backward_flops = 0;
  for (const auto& [kind, sum] : kinds) {
    const NodeWork& work = sum.work;
    if (work.product_flops > 0) {
      products.push_back({.amounts = {work.product_flops, work.weight_bytes, work.products},
                          .seconds = sum.product});
    }
    if (work.memory_bytes > 0) {
      memory.push_back({.amounts = {work.memory_bytes, sum.memory_calls}, .seconds = sum.memory});
    }
    if (work.links > 0) {
      links.push_back({.amounts = {work.link_bytes, work.links}, .seconds = sum.rest});
    }
    const bool is_forward = sum.direction == Direction::F || sum.direction == Direction::R;
    (is_forward ? forward : backward) += sum.attention;
    (is_forward ? forward_flops : backward_flops) += work.attention_flops;
  }
  const auto product = fit_seconds(products), moved = fit_seconds(memory),
             sent = fit_seconds(links);
  return {.product_flop = product[0],
          .weight_byte = product[1],
          .product = product[2],
          .attention_forward_flop = over(forward, forward_flops),
          .attention_backward_flop = over(backward, backward_flops),
          .memory_byte = moved[0],
          .memory_call = moved[1],
          .link_byte = sent[0],
          .link_call = sent[1]};
}

double factor_for(double measured, double by_rates) {
  return by_rates > 0 ? measured / by_rates : 1;
}

NodeFactor fit_factor(const KindSum& sum, const MachineRates& rates) {
  NodeFactor factor{.memory_calls = sum.memory_calls / sum.nodes};
  NodeWork mean = sum.work;
  mean *= 1 / sum.nodes;
  const NodeSeconds by_rates = node_seconds(mean, sum.direction, factor, rates);
  factor.product = factor_for(sum.product / sum.nodes, by_rates.product);
  factor.attention = factor_for(sum.attention / sum.nodes, by_rates.attention);
  factor.memory = factor_for(sum.memory / sum.nodes, by_rates.memory);
  const double rest = sum.rest / sum.nodes, link = by_rates.link_call + by_rates.link_bytes;
  if (link > 0) {
    factor.link = rest / link;
  } else if (mean.other_seconds > 0) {
    factor.other = rest / mean.other_seconds;
  } else {
    factor.seconds = rest;
  }
  return factor;
}

// Number in [low, high] at which the increasing `seconds_at` equals `seconds`; otherwise an end of
// the range.
template <typename SecondsAt>
double number_for(double seconds, double low, double high, const SecondsAt& seconds_at) {
  constexpr int kHalvings = 12;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (seconds_at(middle) < seconds ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Assigns step time beyond nodes and waits to compute: gaps between operations and waits between
// ranks grow with compute.
void fit_untraced(const CalibrationRun& plain, Calibration& calibration) {
  constexpr double kLeast = 0.5, kMost = 1.5;
  double& untraced = calibration.rates.untraced;
  untraced = number_for(plain.seconds, kLeast, kMost, [&](double share) {
    untraced = share;
    return calibrated_step(plain.config, calibration).seconds;
  });
}

// Assigns step time beyond the nodes to wake-ups. A trace adds gaps between a device's operations,
// so traced gaps do not measure waits. A shorter step means that tracing lengthens operations.
void fit_wake(const CalibrationRun& plain, Calibration& calibration) {
  constexpr double kMostWake = 1e-3;
  double& wake = calibration.rates.wake;
  const auto seconds_at = [&](double seconds) {
    wake = seconds;
    return calibrated_step(plain.config, calibration).seconds;
  };
  if (seconds_at(0) >= plain.seconds) {
    fit_untraced(plain, calibration);
  } else {
    wake = number_for(plain.seconds, 0, kMostWake, seconds_at);
  }
}

}  // namespace

Calibration calibrate(const CalibrationRun& plain,
                      const std::optional<CalibrationRun>& overlapped,
                      const HostCores& cores) {
  const grid::Grid grid(derive::layout_of(plain.config));
  const std::vector<RankPlan> plans = schedule::plan_step(plain.config, grid);
  const WorkTable works = node_works(plain.config, grid, plans);
  const MeasuredNodes measured(grid, plain.timelines);
  KindSums kinds;
  for (const RankPlan& plan : plans) {
    const int rank = plan.anatomy.pp_rank;
    for (const Entry& entry : plan.training.entries) {
      Node row = entry.node;
      row.micro_batch = schedule::kNone;
      KindSum& sum = kinds[kind_of_node(row)];
      sum.direction = row.direction;
      sum.add(works.at({rank, row}), measured.at(rank, row));
    }
  }
  Calibration calibration{.rates = fit_rates(kinds), .nodes = {}};
  calibration.rates.cores = cores.count;
  calibration.rates.turn = cores.turn_seconds;
  for (const auto& [kind, sum] : kinds) {
    calibration.nodes[kind] = fit_factor(sum, calibration.rates);
  }
  if (overlapped) {
    const SlowDown slower = slow_down(plain.timelines, overlapped->timelines);
    calibration.rates.beside_communication = slower.beside_communication;
    calibration.rates.beside_compute = slower.beside_compute;
  }
  const bool has_device = cores.count == 0;
  if (has_device) {
    fit_wake(plain, calibration);
  } else {
    calibration.rates.wake = waking_seconds(plain.timelines);
    fit_untraced(plain, calibration);
  }
  return calibration;
}

}  // namespace weft::plan
