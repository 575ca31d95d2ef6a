#include "weft/plan/calibration.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/nominal_costs.h"
#include "weft/schedule/meeting.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using schedule::Node;
using schedule::RankPlan;

constexpr const char* kFormat = "weft calibration 1";
constexpr double kMostFactor = 1e9, kMostSeconds = 1e6;

std::string key_of(Node node) {
  node.layer = node.chunk = node.micro_batch = node.slice = schedule::kNone;
  return schedule::print(node);
}

config::Config without_links(config::Config config) {
  config.fabric = {};
  return config;
}

double simulated(const std::vector<RankPlan>& plans,
                 const sim::CostTable& costs,
                 double wake_seconds) {
  sim::SimulatedStep step;
  for (const RankPlan& plan : plans) step.graphs.push_back(&plan.training);
  step.members = [&plans](int rank, const schedule::Entry& entry) {
    return schedule::stages_of_entry(plans.front().anatomy.pipeline, rank, entry);
  };
  step.cost = costs.for_graphs(step.graphs);
  step.overheads.wake_seconds = wake_seconds;
  return sim::simulate(step).step_seconds();
}

// What was measured of a node, over the ranks of its stage.
class MeasuredNodes {
 public:
  MeasuredNodes(const grid::Grid& grid, const std::vector<trace::Timeline>& timelines) {
    const sim::CostTable measured = sim::measure(timelines);
    for (const auto& [rank, rows] : measured.ranks()) {
      for (const auto& [node, cost] : rows) {
        seconds_[{grid.coordinate(rank).pp, node}].push_back(cost.seconds);
      }
    }
  }

  // 0 of a node that left no span: it had nothing to do.
  double mean(int pp_rank, Node node) const {
    node.micro_batch = schedule::kNone;
    const auto found = seconds_.find({pp_rank, node});
    if (found == seconds_.end()) return 0;
    double sum = 0;
    for (const double seconds : found->second) sum += seconds;
    return sum / base::number(std::ssize(found->second));
  }

 private:
  std::map<std::pair<int, Node>, std::vector<double>> seconds_;
};

}  // namespace

Calibration calibrate(const config::Config& config,
                      const std::vector<trace::Timeline>& timelines,
                      double seconds) {
  const config::Config plain = without_links(config);
  const grid::Grid grid(derive::layout_of(plain));
  const std::vector<RankPlan> plans = schedule::plan_step(plain, grid);
  const sim::CostTable nominal = nominal_costs(plain, grid, plans, {});
  const MeasuredNodes measured(grid, timelines);
  struct Sum {
    double measured = 0, nominal = 0;
    int nodes = 0;
  };
  std::map<std::string, Sum> sums;
  sim::CostTable told;
  for (const RankPlan& plan : plans) {
    const int rank = plan.anatomy.pp_rank;
    for (const schedule::Entry& entry : plan.training.entries) {
      Sum& sum = sums[key_of(entry.node)];
      const double own = measured.mean(rank, entry.node);
      sim::Cost cost = *nominal.find(rank, entry.node);
      sum.measured += own;
      sum.nominal += cost.seconds;
      ++sum.nodes;
      cost.seconds = own;
      told.set(rank, entry.node, cost);
    }
  }
  Calibration calibration;
  for (const auto& [key, sum] : sums) {
    calibration.nodes[key] = sum.nominal > 0 ? NodeFactor{.factor = sum.measured / sum.nominal}
                                             : NodeFactor{.seconds = sum.measured / sum.nodes};
  }
  // What the step took beyond its nodes is waking up, once for each wait between lanes.
  const double without = simulated(plans, told, 0);
  constexpr double kProbe = 1e-5;
  const double slope = (simulated(plans, told, kProbe) - without) / kProbe;
  if (slope > 0) calibration.wake_seconds = std::max(0.0, (seconds - without) / slope);
  return calibration;
}

sim::CostTable calibrated_costs(const config::Config& config,
                                const grid::Grid& grid,
                                const std::vector<RankPlan>& plans,
                                const Calibration& calibration) {
  const sim::CostTable nominal = nominal_costs(without_links(config), grid, plans, {});
  const bool has_links = !derive::fabric_of(config).is_free();
  const sim::CostTable wires =
      has_links ? nominal_costs(config, grid, plans, {}) : sim::CostTable();
  sim::CostTable costs;
  std::set<std::string> unknown;
  for (const RankPlan& plan : plans) {
    const int rank = plan.anatomy.pp_rank;
    for (const schedule::Entry& entry : plan.training.entries) {
      if (costs.find(rank, entry.node) != nullptr) continue;
      const auto found = calibration.nodes.find(key_of(entry.node));
      sim::Cost cost = *nominal.find(rank, entry.node);
      if (found == calibration.nodes.end()) {
        if (cost.seconds > 0) unknown.insert(key_of(entry.node));
        continue;
      }
      cost.seconds = cost.seconds * found->second.factor + found->second.seconds;
      if (has_links && schedule::is_meeting(entry)) {
        cost.seconds += wires.find(rank, entry.node)->seconds;
      }
      costs.set(rank, entry.node, cost);
    }
  }
  if (!unknown.empty()) {
    throw base::ConfigError(
        base::text("the calibration has no {}: calibrate with a run that has them",
                   fmt::join(unknown, ", ")));
  }
  std::vector<const schedule::Graph*> graphs;
  for (const RankPlan& plan : plans) graphs.push_back(&plan.training);
  return sim::complete(costs, graphs);
}

double calibrated_seconds(const config::Config& config, const Calibration& calibration) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<RankPlan> plans = schedule::plan_step(config, grid);
  return simulated(plans,
                   calibrated_costs(config, grid, plans, calibration),
                   calibration.wake_seconds);
}

std::string print(const Calibration& calibration) {
  base::Json nodes = base::Json::object();
  for (const auto& [key, factor] : calibration.nodes) {
    nodes[key] = {{"factor", factor.factor}, {"seconds", factor.seconds}};
  }
  const base::Json json{{"format", kFormat},
                        {"wake_seconds", calibration.wake_seconds},
                        {"nodes", std::move(nodes)}};
  return json.dump(1) + "\n";
}

Calibration parse_calibration(std::string_view text) {
  const base::Json json = base::Json::parse(text, nullptr, false);
  const auto refuse = [](const std::string& what) {
    throw base::ConfigError("this is no calibration of `weft calibrate`: " + what);
  };
  if (json.is_discarded() || !json.is_object()) refuse("it is not JSON, or not an object");
  if (json.value("format", base::Json()) != kFormat) {
    refuse(base::text("'format' is not \"{}\"", kFormat));
  }
  const auto number = [&](const base::Json& at, const char* name, double most) {
    const base::Json found = at.is_object() ? at.value(name, base::Json()) : base::Json();
    const double value = found.is_number() ? found.get<double>() : -1;
    if (!(value >= 0 && value <= most)) {
      refuse(base::text("'{}' is not a number from 0 to {:g}", name, most));
    }
    return value;
  };
  Calibration calibration{.nodes = {}, .wake_seconds = number(json, "wake_seconds", kMostSeconds)};
  const base::Json nodes = json.value("nodes", base::Json());
  if (!nodes.is_object()) refuse("'nodes' is not an object");
  for (const auto& [key, value] : nodes.items()) {
    calibration.nodes[key_of(schedule::parse_node(key))] = {
        .factor = number(value, "factor", kMostFactor),
        .seconds = number(value, "seconds", kMostSeconds)};
  }
  return calibration;
}

}  // namespace weft::plan
