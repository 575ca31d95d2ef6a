#include "weft/plan/price/simulated_step.h"

#include <utility>

namespace weft::plan {

namespace sim = exec::sim;

std::vector<const schedule::Graph*> training_graphs(const std::vector<schedule::RankPlan>& plans) {
  std::vector<const schedule::Graph*> graphs;
  for (const schedule::RankPlan& plan : plans) graphs.push_back(&plan.training);
  return graphs;
}

sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                  sim::CostOf cost,
                                  const sim::Overheads& overheads) {
  return {.graphs = training_graphs(plans),
          .members =
              [pipeline = plans.front().anatomy.pipeline](int rank, const schedule::Entry& entry) {
                return schedule::stages_of_entry(pipeline, rank, entry);
              },
          .cost = std::move(cost),
          .wire = {},
          .overheads = overheads};
}

sim::SimulatedStep simulated_step(const std::vector<schedule::RankPlan>& plans,
                                  const sim::CostTable& costs,
                                  const sim::Overheads& overheads) {
  return simulated_step(plans, costs.for_graphs(training_graphs(plans)), overheads);
}

}  // namespace weft::plan
