#include "weft/train/engine.h"

#include "weft/base/check.h"
#include "weft/config/derived.h"
#include "weft/schedule/builders/accumulation.h"
#include "weft/schedule/verify.h"

namespace weft::train {
namespace {

schedule::Sums sums_over(int ranks) {
  return ranks > 1 ? schedule::Sums::OverRanks : schedule::Sums::None;
}

// The group a collective of a lane runs in.
std::vector<int> members(const grid::Grid& grid, int rank, schedule::Lane lane) {
  using grid::GroupKind;
  return grid.group_of(lane == schedule::Lane::Ep ? GroupKind::Ep : GroupKind::World, rank);
}

void check_graph(const schedule::Graph& graph,
                 const Plan& plan,
                 const grid::Grid& grid,
                 schedule::Pass pass) {
  std::vector<std::string> complaints =
      schedule::verify(graph, plan.anatomy, plan.micro_batches, pass);
  if (complaints.empty()) {
    const std::vector<const schedule::Graph*> graphs(static_cast<std::size_t>(grid.world()),
                                                     &graph);
    complaints = schedule::verify_union(graphs, [&](int rank, schedule::Lane lane) {
      return members(grid, rank, lane);
    });
  }
  CHECK(complaints.empty(), "the schedule is wrong: {}", fmt::join(complaints, "; "));
}

schedule::Graph training_graph(const config::Config& config, const grid::Grid& grid) {
  const Plan plan = plan_of(config, grid);
  schedule::Graph graph = schedule::build_accumulation(plan.anatomy, plan.micro_batches);
  check_graph(graph, plan, grid, schedule::Pass::Training);
  return graph;
}

schedule::Graph forward_graph(const config::Config& config, const grid::Grid& grid) {
  const Plan plan = plan_of(config, grid);
  schedule::Graph graph = schedule::build_forward(plan.anatomy, plan.micro_batches);
  check_graph(graph, plan, grid, schedule::Pass::ForwardOnly);
  return graph;
}

std::vector<optim::AdamW> make_optimizers(tensor::Pool& pool, const model::Parameters& parameters) {
  std::vector<optim::AdamW> optimizers;
  for (const model::Home home : {model::Home::Dense, model::Home::Expert}) {
    std::vector<optim::Segment> segments;
    for (const model::Parameter& parameter : parameters.all()) {
      if (parameter.spec.home != home) continue;
      segments.push_back(
          {.begin = parameter.offset,
           .count = parameter.weight.elements(),
           .decay = parameter.spec.is_matrix() ? optim::Decay::Yes : optim::Decay::No});
    }
    std::ranges::sort(segments, {}, &optim::Segment::begin);
    const model::ParameterBuffer& buffer = parameters.buffer(home);
    optimizers.emplace_back(pool, buffer.weights, buffer.gradients, std::move(segments));
  }
  return optimizers;
}

model::Parameters make_parameters(tensor::Pool& pool, const config::Config& config, int ep_rank) {
  model::Parameters parameters(pool, config.model, ep_rank);
  parameters.initialise(static_cast<std::uint64_t>(config.rng.seed));
  return parameters;
}

}  // namespace

Plan plan_of(const config::Config& config, const grid::Grid& grid) {
  return {.anatomy = schedule::describe(config.model,
                                        {.dense = sums_over(grid.dp() * grid.cp()),
                                         .expert = sums_over(grid.edp()),
                                         .totals = sums_over(grid.world())}),
          .micro_batches = static_cast<int>(config::micro_batches(config.train, grid.dp()))};
}

Engine::Engine(const config::Config& config, comm::Endpoint& endpoint)
    : config_(config),
      rank_(endpoint.rank()),
      groups_(join_groups(config::layout_of(config), endpoint)),
      training_graph_(training_graph(config_, groups_.grid)),
      forward_graph_(forward_graph(config_, groups_.grid)),
      lanes_(training_graph_, static_cast<int>(config.runtime.threads_per_rank)),
      parameters_(make_parameters(pool_, config_, groups_.self.ep)),
      optimizers_(make_optimizers(pool_, parameters_)),
      program_(config_, pool_, lanes_[schedule::Lane::Compute], groups_, parameters_, optimizers_),
      training_(training_graph_, lanes_),
      forward_(forward_graph_, lanes_) {}

Share Engine::share() const {
  return {.micro_batch_size = config_.train.micro_batch_size,
          .micro_batches = config::micro_batches(config_.train, groups_.grid.dp()),
          .dp = groups_.grid.dp(),
          .dp_rank = groups_.self.dp};
}

std::string Engine::label() const {
  return base::text("[PP{:02}-DP{:02}-EP{:02}]", groups_.self.pp, groups_.self.dp, groups_.self.ep);
}

}  // namespace weft::train
