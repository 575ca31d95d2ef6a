#include "weft/plan/order/zero_bubble.h"

#include <map>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

using base::at;
using exec::sim::CostTable;
using schedule::Direction;
using schedule::Node;

// Node without layer, rank and micro-batch.
Node anywhere(Node node) {
  node.layer = node.micro_batch = schedule::kNone;
  return node;
}

// Mean costs of layer nodes over layers and ranks; a piece measured in parts has the sum of its
// parts.
std::map<Node, double> mean_costs(const CostTable& measured) {
  struct Sum {
    double seconds = 0;
    int nodes = 0;
  };
  std::map<Node, Sum> sums;
  for (const auto& [rank, rows] : measured.ranks()) {
    for (const auto& [node, cost] : rows) {
      if (node.layer == schedule::kNone) continue;
      Sum& sum = sums[anywhere(node)];
      sum.seconds += cost.seconds;
      ++sum.nodes;
    }
  }
  std::map<Node, double> means, wholes;
  for (const auto& [node, sum] : sums) {
    means[node] = sum.seconds / sum.nodes;
    Node whole = node;
    whole.part = schedule::Part::None;
    if (node.part != schedule::Part::None) wholes[whole] += means[node];
  }
  means.insert(wholes.begin(), wholes.end());
  return means;
}

class EqualStages {
 public:
  EqualStages(const config::Config& config, const CostTable& measured)
      : plans_(schedule::plan_step(config, grid::Grid(derive::layout_of(config)))),
        means_(mean_costs(measured)) {}

  double step_seconds() const {
    const auto cost = [this](int rank, int entry) {
      return exec::sim::Cost{.seconds = seconds_of(plans_[at(rank)].training.entries[at(entry)])};
    };
    return exec::sim::simulate(simulated_step(plans_, cost)).step_seconds();
  }
  double micro_batches() const { return plans_.front().shape.micro_batches; }
  // Work of a stage in this direction over all micro-batches. Weight gradients that wait for
  // nothing count with their input gradients.
  double work(Direction direction) const {
    double seconds = 0;
    for (const schedule::Entry& entry : plans_.front().training.entries) {
      const bool stays = entry.node.direction == Direction::W &&
                         !schedule::may_be_delayed(plans_.front().anatomy.flow, entry.node);
      if ((stays ? Direction::D : entry.node.direction) == direction) seconds += seconds_of(entry);
    }
    return seconds;
  }

 private:
  double seconds_of(const schedule::Entry& entry) const {
    if (entry.lane != schedule::Lane::Compute || entry.node.layer == schedule::kNone) return 0;
    const auto found = means_.find(anywhere(entry.node));
    return found == means_.end() ? 0 : found->second;
  }

  std::vector<schedule::RankPlan> plans_;
  std::map<Node, double> means_;
};

}  // namespace

double Bubbles::wanted_share() const {
  const double all = forward + input_gradients + weight_gradients;
  return (all - 2 * weight_gradients) / all;
}

Bubbles bubbles_of(const config::Config& zero_bubble, const CostTable& measured) {
  config::Config plain = zero_bubble;
  plain.runtime.pipeline_schedule = config::PipelineSchedule::OneForwardOneBackward;
  const EqualStages filled(zero_bubble, measured), whole(plain, measured);
  const double forward = filled.work(Direction::F), input = filled.work(Direction::D),
               weight = filled.work(Direction::W);
  const double work = forward + input + weight;
  const double micro_batches = filled.micro_batches();
  return {.forward = forward / micro_batches,
          .input_gradients = input / micro_batches,
          .weight_gradients = weight / micro_batches,
          .plain = whole.step_seconds() - work,
          .filled = filled.step_seconds() - work};
}

}  // namespace weft::plan
