#include "weft/plan/overlap_prediction.h"

#include <algorithm>
#include <map>
#include <utility>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/simulate.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using schedule::Node;

Node without_micro_batch(Node node) {
  node.micro_batch = schedule::kNone;
  return node;
}

// Bytes each rank sends in an operation, whatever its micro-batch: the mean over what was traced.
class SentBytes {
 public:
  explicit SentBytes(const std::vector<trace::Timeline>& timelines) {
    for (const trace::Timeline& timeline : timelines) {
      for (const trace::Span& span : timeline.spans) {
        if (!trace::is_node(span) || span.operation.empty()) continue;
        const Node operation = without_micro_batch(schedule::parse_node(span.operation));
        Sum& sum = sums_[{timeline.rank, operation}];
        sum.bytes += span.bytes;
        ++sum.spans;
      }
    }
  }

  // To each of the others alike.
  std::vector<grid::Transfer> transfers(const Node& meeting, std::span<const int> members) const {
    std::vector<grid::Transfer> all;
    const auto peers = static_cast<std::int64_t>(members.size()) - 1;
    for (const int from : members) {
      const auto found = sums_.find({from, without_micro_batch(meeting)});
      if (found == sums_.end() || found->second.bytes == 0) continue;
      const std::int64_t bytes = found->second.bytes / found->second.spans;
      for (const int to : members) {
        if (to != from) all.push_back({.from = from, .to = to, .bytes = bytes / peers});
      }
    }
    return all;
  }

 private:
  struct Sum {
    std::int64_t bytes = 0, spans = 0;
  };
  std::map<std::pair<int, Node>, Sum> sums_;
};

// A config's graphs by world rank, and what the simulator asks about them.
class World {
 public:
  explicit World(const config::Config& config)
      : grid_(derive::layout_of(config)), plans_(schedule::plan_step(config, grid_)) {
    for (int rank = 0; rank < grid_.world(); ++rank) {
      graphs_.push_back(&plans_[static_cast<std::size_t>(grid_.coordinate(rank).pp)].training);
    }
  }

  sim::SimulatedStep step(const sim::CostTable& costs) const {
    return {.graphs = graphs_,
            .members =
                [this](int rank, const schedule::Entry& entry) {
                  return schedule::ranks_of_entry(grid_, rank, entry);
                },
            .cost = costs.for_graphs(graphs_),
            .wire = {},
            .overheads = {}};
  }

  const std::vector<const schedule::Graph*>& graphs() const { return graphs_; }

 private:
  grid::Grid grid_;
  std::vector<schedule::RankPlan> plans_;
  std::vector<const schedule::Graph*> graphs_;
};

double simulated(const World& world, const sim::CostTable& costs, double wake_seconds) {
  sim::SimulatedStep step = world.step(costs);
  step.overheads.wake_seconds = wake_seconds;
  return sim::simulate(step).step_seconds();
}

// The same costs, but none for the entries left out.
sim::CostOf without(bool (*is_left_out)(const schedule::Entry&),
                    const World& world,
                    const sim::CostOf& measured) {
  return [=, &world](int rank, int entry) {
    const schedule::Graph& graph = *world.graphs()[static_cast<std::size_t>(rank)];
    sim::Cost cost = measured(rank, entry);
    if (is_left_out(graph.entries[static_cast<std::size_t>(entry)])) cost.seconds = 0;
    return cost;
  };
}

bool is_compute(const schedule::Entry& entry) { return entry.lane == schedule::Lane::Compute; }

// `sent` outlives it.
sim::Wire wire_of(const grid::Fabric& fabric, const SentBytes& sent) {
  return {.fabric = fabric,
          .transfers = [&sent](const Node& meeting, std::span<const int> members) {
            return sent.transfers(meeting, members);
          }};
}

}  // namespace

OverlapPrediction::OverlapPrediction(const config::Config& plain_config,
                                     const std::optional<grid::Fabric>& fabric,
                                     std::vector<trace::Timeline> plain,
                                     double plain_seconds)
    : plain_config_(plain_config), fabric_(fabric), plain_(std::move(plain)) {
  // What the plain step took beyond its nodes is waking up, once for each wait between lanes.
  const World world(plain_config_);
  const sim::CostTable costs = sim::measure(plain_, world.graphs());
  const double without = simulated(world, costs, 0);
  constexpr double kProbe = 1e-5;
  const double slope = (simulated(world, costs, kProbe) - without) / kProbe;
  if (slope > 0) wake_seconds_ = std::max(0.0, (plain_seconds - without) / slope);
}

double OverlapPrediction::step_seconds(const config::Config& config) const {
  const World world(config);
  return simulated(world, sim::measure(plain_, world.graphs()), wake_seconds_);
}

double OverlapPrediction::ideal_seconds(const config::Config& config) const {
  const World world(config);
  const sim::CostTable costs = sim::measure(plain_, world.graphs());
  if (!fabric_) return simulated(world, costs, 0);
  const SentBytes sent(plain_);
  sim::SimulatedStep step = world.step(costs);
  step.cost = without(schedule::is_meeting, world, step.cost);
  step.wire = wire_of(*fabric_, sent);
  return sim::simulate(step).step_seconds();
}

double OverlapPrediction::compute_seconds() const {
  const World world(plain_config_);
  sim::SimulatedStep step = world.step(sim::measure(plain_, world.graphs()));
  step.cost = without(schedule::is_meeting, world, step.cost);
  return sim::simulate(step).step_seconds();
}

double OverlapPrediction::communication_seconds(const grid::Fabric& links) const {
  const World world(plain_config_);
  const SentBytes sent(plain_);
  sim::SimulatedStep step = world.step(sim::measure(plain_, world.graphs()));
  step.cost = without(is_compute, world, step.cost);
  step.wire = wire_of(links, sent);
  return sim::simulate(step).step_seconds();
}

}  // namespace weft::plan
