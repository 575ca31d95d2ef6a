#include "weft/plan/price/overlap_prediction.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/exec/sim/measured_overheads.h"
#include "weft/exec/sim/simulate.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/text/plan_files.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using schedule::Node;

Node without_micro_batch(Node node) {
  node.micro_batch = schedule::kNone;
  return node;
}

using SentBytes = std::map<std::pair<int, Node>, std::int64_t>;  // by rank and operation

SentBytes mean_sent(const std::vector<trace::Timeline>& timelines) {
  struct Sum {
    std::int64_t bytes = 0, spans = 0;
  };
  std::map<std::pair<int, Node>, Sum> sums;
  for (const trace::Timeline& timeline : timelines) {
    for (const trace::Span& span : timeline.spans) {
      if (!trace::is_node(span) || span.operation.empty()) continue;
      const Node operation = without_micro_batch(schedule::parse_node(span.operation));
      Sum& sum = sums[{timeline.rank, operation}];
      sum.bytes += span.bytes;
      ++sum.spans;
    }
  }
  SentBytes sent;
  for (const auto& [key, sum] : sums) sent[key] = sum.bytes / sum.spans;
  return sent;
}

// Transfers in equal parts to the other members.
std::vector<grid::Transfer> transfers_of(const SentBytes& sent,
                                         const Node& meeting,
                                         std::span<const int> members) {
  std::vector<grid::Transfer> all;
  const auto peers = static_cast<std::int64_t>(members.size()) - 1;
  for (const int from : members) {
    const auto found = sent.find({from, without_micro_batch(meeting)});
    if (found == sent.end() || found->second == 0) continue;
    for (const int to : members) {
      if (to != from) all.push_back({.from = from, .to = to, .bytes = found->second / peers});
    }
  }
  return all;
}

// Graphs of a config by world rank, with the simulator's queries.
class World {
 public:
  explicit World(const config::Config& config)
      : grid_(derive::layout_of(config)), plans_(schedule::plan_step(config, grid_)) {
    if (!config.runtime.schedule.empty()) {
      schedule::take_orders_from(config.runtime.schedule, plans_);
    }
    for (int rank = 0; rank < grid_.world(); ++rank) {
      graphs_.push_back(&plans_[static_cast<std::size_t>(grid_.coordinate(rank).pp)].training);
    }
  }

  sim::SimulatedStep step(const sim::CostTable& measured) const {
    return {
        .graphs = graphs_,
        .members =
            [this](int rank, const schedule::Entry& entry) {
              return schedule::ranks_of_entry(grid_, plans_.front().anatomy.pipeline, rank, entry);
            },
        .cost = sim::complete(measured, graphs_).for_graphs(graphs_),
        .wire = {},
        .overheads = {}};
  }

  const std::vector<const schedule::Graph*>& graphs() const { return graphs_; }

  // Fills ranks without timelines with the bytes of the first traced rank of their stage.
  SentBytes by_symmetry(SentBytes sent) const {
    std::map<const schedule::Graph*, int> told;  // a rank of each graph
    std::set<int> tell;
    for (const auto& [key, bytes] : sent) {
      told.try_emplace(graphs_.at(static_cast<std::size_t>(key.first)), key.first);
      tell.insert(key.first);
    }
    for (const auto& [key, bytes] : SentBytes(sent)) {
      for (int rank = 0; rank < std::ssize(graphs_); ++rank) {
        const auto like = told.find(graphs_[static_cast<std::size_t>(rank)]);
        if (tell.contains(rank) || like == told.end() || like->second != key.first) continue;
        sent[{rank, key.second}] = bytes;
      }
    }
    return sent;
  }

 private:
  grid::Grid grid_;
  std::vector<schedule::RankPlan> plans_;
  std::vector<const schedule::Graph*> graphs_;
};

double simulated(const World& world, const sim::CostTable& costs, const sim::Overheads& overheads) {
  sim::SimulatedStep step = world.step(costs);
  step.overheads = overheads;
  return sim::simulate(step).step_seconds();
}

// Costs with zero for the excluded entries.
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

bool is_of_no_layer(const Node& node) { return node.layer == schedule::kNone; }

// `sent` must outlive it.
sim::Wire wire_of(const grid::Fabric& fabric, const SentBytes& sent) {
  return {.fabric = fabric,
          .transfers = [&sent](const Node& meeting, std::span<const int> members) {
            return transfers_of(sent, meeting, members);
          }};
}

}  // namespace

OverlapPrediction::OverlapPrediction(const config::Config& plain_config,
                                     const std::optional<grid::Fabric>& fabric,
                                     const std::vector<trace::Timeline>& plain,
                                     double plain_seconds)
    : plain_config_(plain_config), fabric_(fabric), costs_(sim::measure(plain)) {
  const World world(plain_config_);
  sent_bytes_ = world.by_symmetry(mean_sent(plain));
  // The plain step's overhead beyond its nodes lies between them.
  sim::Overheads traced = sim::measure_overheads(plain);
  if (traced.wake_seconds + traced.next_seconds == 0) traced.wake_seconds = 1e-5;
  const double without = simulated(world, costs_, {});
  const double with = simulated(world, costs_, traced);
  if (with <= without) return;
  const double factor = std::max(0.0, (plain_seconds - without) / (with - without));
  overheads_ = {.wake_seconds = factor * traced.wake_seconds,
                .next_seconds = factor * traced.next_seconds};
}

void OverlapPrediction::take_compute_from(const std::vector<trace::Timeline>& busy) {
  const sim::CostTable measured = sim::measure(busy);
  const World world(plain_config_);
  for (int rank = 0; rank < std::ssize(world.graphs()); ++rank) {
    for (const schedule::Entry& entry : world.graphs()[static_cast<std::size_t>(rank)]->entries) {
      const sim::Cost* cost = is_compute(entry) ? measured.find(rank, entry.node) : nullptr;
      if (cost != nullptr) costs_.set(rank, entry.node, *cost);
    }
  }
}

void OverlapPrediction::take_copies_from(const std::vector<trace::Timeline>& free, double slower) {
  const sim::CostTable copies = sim::measure(free);
  const World world(plain_config_);
  double copying = 0, communicating = 0;
  for (int rank = 0; rank < std::ssize(world.graphs()); ++rank) {
    for (const schedule::Entry& entry : world.graphs()[static_cast<std::size_t>(rank)]->entries) {
      if (!schedule::is_meeting(entry)) continue;
      const sim::Cost* copy = copies.find(rank, entry.node);
      const sim::Cost* all = costs_.find(rank, entry.node);
      if (copy == nullptr || all == nullptr) continue;
      copying += copy->seconds;
      communicating += all->seconds;
    }
  }
  if (communicating <= 0) return;
  contention_.beside_communication = slower * std::min(1.0, copying / communicating);
}

double OverlapPrediction::step_seconds(const config::Config& config) const {
  const World world(config);
  sim::SimulatedStep step = world.step(costs_);
  step.overheads = overheads_;
  return sim::simulate(step, contention_).step_seconds();
}

double OverlapPrediction::ideal_seconds(const config::Config& config) const {
  const World world(config);
  if (!fabric_) return simulated(world, costs_, {});
  sim::SimulatedStep step = world.step(costs_);
  step.cost = without(schedule::is_meeting, world, step.cost);
  step.wire = wire_of(*fabric_, sent_bytes_);
  return sim::simulate(step).step_seconds();
}

double OverlapPrediction::compute_seconds() const {
  const World world(plain_config_);
  sim::SimulatedStep step = world.step(costs_);
  step.cost = without(schedule::is_meeting, world, step.cost);
  return sim::simulate(step).step_seconds();
}

double OverlapPrediction::communication_seconds(const grid::Fabric& links) const {
  const World world(plain_config_);
  sim::SimulatedStep step = world.step(costs_);
  step.cost = without(is_compute, world, step.cost);
  step.wire = wire_of(links, sent_bytes_);
  return sim::simulate(step).step_seconds();
}

double OverlapPrediction::added_seconds(const grid::Fabric& links) const {
  const World world(plain_config_);
  sim::SimulatedStep step = world.step(costs_);
  step.wire = wire_of(links, sent_bytes_);
  return sim::simulate(step).step_seconds() - simulated(world, costs_, {});
}

double OverlapPrediction::layers_communication_seconds(const grid::Fabric& links) const {
  const World world(plain_config_);
  SentBytes sent = sent_bytes_;
  std::erase_if(sent, [](const auto& one) { return is_of_no_layer(one.first.second); });
  sim::SimulatedStep step = world.step(costs_);
  const auto is_left_out = [](const schedule::Entry& entry) {
    return !schedule::is_meeting(entry) || is_of_no_layer(entry.node);
  };
  step.cost = without(is_left_out, world, step.cost);
  step.wire = wire_of(links, sent);
  return sim::simulate(step).step_seconds();
}

}  // namespace weft::plan
