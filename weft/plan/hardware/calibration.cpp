#include "weft/plan/hardware/calibration.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/plan/cost/calibrated_node.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/schedule/meeting.h"

namespace weft::plan {

namespace sim = exec::sim;
using schedule::Entry;
using schedule::Node;
using schedule::RankPlan;

std::string kind_of_node(Node node) {
  node.layer = node.chunk = node.micro_batch = node.slice = schedule::kNone;
  return schedule::print(node);
}

// Recomputation has the factor of the forward, and a part the factor of the whole piece.
std::optional<NodeFactor> known_factor(const Calibration& calibration, Node node) {
  const auto find = [&](Node like) -> std::optional<NodeFactor> {
    const auto found = calibration.nodes.find(kind_of_node(like));
    if (found == calibration.nodes.end()) return std::nullopt;
    return found->second;
  };
  for (int i = 0; i < 2; ++i) {
    if (const auto factor = find(node)) return factor;
    if (node.direction == schedule::Direction::R) {
      Node forward = node;
      forward.direction = schedule::Direction::F;
      if (const auto factor = find(forward)) return factor;
    }
    node.part = schedule::Part::None;
  }
  return std::nullopt;
}

NodeSeconds node_seconds(const NodeWork& work,
                         schedule::Direction direction,
                         const NodeFactor& factor,
                         const MachineRates& rates) {
  const bool is_forward =
      direction == schedule::Direction::F || direction == schedule::Direction::R;
  NodeSeconds seconds;
  if (work.product_flops > 0) {
    seconds.product =
        factor.product * (work.products * rates.product + work.product_flops * rates.product_flop +
                          work.weight_bytes * rates.weight_byte);
  }
  seconds.attention = factor.attention * work.attention_flops *
                      (is_forward ? rates.attention_forward_flop : rates.attention_backward_flop);
  if (work.memory_bytes > 0) {
    seconds.memory = factor.memory * (factor.memory_calls * rates.memory_call +
                                      work.memory_bytes * rates.memory_byte);
  }
  seconds.link_call = factor.link * work.links * rates.link_call;
  seconds.link_bytes = factor.link * work.link_bytes * rates.link_byte;
  seconds.other = factor.other * work.other_seconds + factor.seconds;
  return seconds;
}

sim::CostTable calibrated_costs(const config::Config& config,
                                const grid::Grid& grid,
                                const std::vector<RankPlan>& plans,
                                const Calibration& calibration) {
  const WorkTable works = node_works(config, grid, plans);
  const bool has_links = !derive::fabric_of(config).is_free();
  const sim::CostTable wires =
      has_links ? nominal_costs(config, grid, plans, {}) : sim::CostTable();
  sim::CostTable costs;
  std::set<std::string> unknown;
  for (const RankPlan& plan : plans) {
    const int rank = plan.anatomy.pp_rank;
    for (const Entry& entry : plan.training.entries) {
      Node row = entry.node;
      row.micro_batch = schedule::kNone;
      if (costs.find(rank, row) != nullptr) continue;
      const NodeWork& work = works.at({rank, row});
      const std::optional<NodeFactor> factor = known_factor(calibration, row);
      if (!factor && work.other_seconds > 0) unknown.insert(kind_of_node(row));
      const bool is_meeting = schedule::is_meeting(entry);
      const double wire = has_links && is_meeting ? wires.find(rank, row)->seconds : 0;
      const NodeSeconds seconds =
          node_seconds(work, row.direction, factor.value_or(NodeFactor{}), calibration.rates);
      costs.set(rank, row, seconds.cost(entry, wire, calibration.rates.untraced));
    }
  }
  if (unknown.empty()) return costs;
  throw base::ConfigError(
      base::text("the calibration has no {}: calibrate with a run that has them",
                 fmt::join(unknown, ", ")));
}

sim::Cost NodeSeconds::cost(const Entry& entry, double wire_seconds, double untraced) const {
  if (schedule::is_meeting(entry)) {
    return {.seconds = link_call + other + std::max(link_bytes, wire_seconds),
            .kind = trace::SpanKind::Communication};
  }
  if (entry.lane == schedule::Lane::Host) return {.seconds = other, .kind = trace::SpanKind::Host};
  if (schedule::is_copy(entry.lane)) return {.seconds = other, .kind = trace::SpanKind::Copy};
  const double computing = product + attention;
  return {.seconds = untraced * (computing + memory + other),
          .kind = computing > memory ? trace::SpanKind::Gemm : trace::SpanKind::Memory};
}

sim::Overheads overheads_of(const Calibration& calibration) {
  return {.wake_seconds = calibration.rates.wake};
}

sim::Contention contention_of(const config::Config& config, const Calibration& calibration) {
  const grid::Layout layout = derive::layout_of(config);
  const bool is_alone = config::is_pretended(config.runtime.backend);
  const double ranks = is_alone ? 1 : base::number(layout.world / layout.pp);
  const double threads = base::number(config.runtime.threads_per_rank);
  sim::Contention contention{.beside_communication = calibration.rates.beside_communication};
  // Emulated links keep their time beside other work.
  if (derive::fabric_of(config).is_free()) {
    contention.beside_compute = calibration.rates.beside_compute;
  }
  if (config.runtime.device != config::DeviceKind::Cuda) {
    contention.cores = calibration.rates.cores;
    contention.turn_seconds = calibration.rates.turn;
    contention.cores_of_rank.assign(base::at(layout.pp), ranks * threads);
  }
  return contention;
}

CalibratedStep calibrated_step(const config::Config& config, const Calibration& calibration) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<RankPlan> plans = schedule::plan_step(config, grid);
  CalibratedStep result{.seconds = 0, .costs = calibrated_costs(config, grid, plans, calibration)};
  const sim::SimulatedStep step = simulated_step(plans, result.costs, overheads_of(calibration));
  result.seconds = sim::simulate(step, contention_of(config, calibration)).step_seconds();
  return result;
}

}  // namespace weft::plan
