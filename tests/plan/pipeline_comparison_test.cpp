#include "weft/plan/price/pipeline_comparison.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/order/zero_bubble.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace pipeline_comparison_test {

using config::PipelineSchedule;
using schedule::Direction;
using schedule::Node;

// Equal stages of a pipeline of four ranks, eight micro-batches.
config::Config pipeline() {
  config::Config config;
  config.model.num_layers = 8;
  config.model.num_moe_experts = 8;
  config.model.moe_ffn_hidden_size = 256;
  config.model.pipeline_model_parallel_size = 4;
  config.train.global_batch_size = 8;
  return config;
}

struct Step {
  double seconds = 0;
  std::int64_t kept = 0;
  std::int64_t idle_ns = 0;  // on the rank with most
};

// Embedding and head cost 0 here, as do other nodes that only one stage has.
Step simulate(PipelineSchedule order, const std::function<double(const Node&)>& seconds_of) {
  config::Config config = pipeline();
  config.runtime.pipeline_schedule = order;
  config = rules::validate_schedule(config).config;
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  EXPECT_EQ(schedule::verify_plan(plans), std::vector<std::string>{});
  Step result;
  for (const schedule::RankPlan& plan : plans) {
    const schedule::Load load{.tokens = 1024, .rows = 2048};
    result.kept =
        std::max(result.kept, schedule::activation_mark(plan.training, plan.anatomy, load));
  }
  const auto cost = [&](int rank, int entry) -> exec::sim::Cost {
    const auto& graph = plans[static_cast<std::size_t>(rank)].training;
    return {.seconds = seconds_of(graph.entries[static_cast<std::size_t>(entry)].node)};
  };
  result.seconds = exec::sim::simulate(simulated_step(plans, cost)).step_seconds();
  return result;
}

TEST(ZeroBubble, ReachesItsBarInTheSimulator) {
  struct Costs {
    double forward, input, weight;
  };
  for (const Costs& cost : {Costs{1, 1, 1}, Costs{1, 1.2, 0.8}, Costs{1, 1.1, 0.6}}) {
    const auto seconds_of = [&](const Node& node) {
      if (node.layer == schedule::kNone) return 0.0;
      const bool is_attention = node.piece == schedule::Piece::Attention &&
                                (node.part == schedule::Part::None ||
                                 node.part == schedule::Part::Qkv);  // parts after the split
      const bool weighs = is_attention || node.piece == schedule::Piece::Experts;
      if (!weighs) return 0.0;
      // Four nodes per stage and direction.
      if (node.direction == Direction::F) return cost.forward / 4;
      return (node.direction == Direction::D ? cost.input : cost.weight) / 4;
    };
    const Step plain = simulate(PipelineSchedule::OneForwardOneBackward, seconds_of);
    const Step filled = simulate(PipelineSchedule::ZeroBubble, seconds_of);
    const double turn = cost.forward + cost.input + cost.weight, work = 8 * turn;
    const double bar = (turn - 2 * cost.weight) / turn * 1.03;
    EXPECT_LE(filled.seconds - work, bar * (plain.seconds - work));
    EXPECT_LE(filled.kept, plain.kept);
  }
}

// Node costs as in a traced step: attention in parts, and unequal stages.
TEST(ZeroBubble, ReachesItsBarFromTheCostsOfARun) {
  config::Config config = pipeline();
  config.runtime.pipeline_schedule = PipelineSchedule::ZeroBubble;
  config = rules::validate_schedule(config).config;
  exec::sim::CostTable costs;
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
  std::map<Direction, double> sums;
  for (int rank = 0; rank < std::ssize(plans); ++rank) {
    for (const schedule::Entry& entry : plans[static_cast<std::size_t>(rank)].training.entries) {
      const Node& node = entry.node;
      if (entry.lane != schedule::Lane::Compute) continue;
      const bool weighs = node.piece == schedule::Piece::Experts ||
                          node.part == schedule::Part::Qkv || node.part == schedule::Part::Core;
      double seconds = node.layer == schedule::kNone ? 7 : weighs ? 1 : 0.01;
      if (node.direction == Direction::W) seconds *= 0.7;
      if (node.direction == Direction::D) seconds *= 1.2;
      costs.set(rank, node, {.seconds = seconds * (rank == 2 ? 1.5 : 1)});
      if (node.layer == schedule::kNone || node.micro_batch != 0) continue;
      // Norms, router and other nodes that do not wait run in the turn of input gradients.
      const bool waits =
          schedule::may_be_delayed(plans[static_cast<std::size_t>(rank)].anatomy.flow, node);
      const bool stays = node.direction == Direction::W && !waits;
      sums[stays ? Direction::D : node.direction] += seconds * (rank == 2 ? 1.5 : 1) / 4;
    }
  }
  const Bubbles bubbles = bubbles_of(config, costs);
  EXPECT_NEAR(bubbles.forward, sums[Direction::F], 1e-9);
  EXPECT_NEAR(bubbles.input_gradients, sums[Direction::D], 1e-9);
  EXPECT_NEAR(bubbles.weight_gradients, sums[Direction::W], 1e-9);
  const double turn = bubbles.forward + bubbles.input_gradients + bubbles.weight_gradients;
  EXPECT_NEAR(bubbles.plain, 3 * turn, 1e-6 * turn);
  EXPECT_LE(bubbles.share(), 1.03 * bubbles.wanted_share());
  EXPECT_LT(bubbles.wanted_share(), 0.7);
}

TEST(PipelineComparison, HasEveryOrderBesideTheOthers) {
  const std::vector<PipelineOrder> orders = compare_pipelines(pipeline(), {});
  ASSERT_EQ(orders.size(), 4u);
  for (const PipelineOrder& order : orders) {
    EXPECT_EQ(order.refusal, "") << config::word(order.schedule);
    EXPECT_EQ(order.is_asked_for, order.schedule == PipelineSchedule::OneForwardOneBackward);
    EXPECT_GT(order.activation_bytes, 0);
  }
  EXPECT_LT(orders[2].idle, orders[0].idle);
  EXPECT_LT(orders[3].idle, orders[2].idle);
}

TEST(PipelineComparison, SaysWhyAnOrderIsNotThere) {
  config::Config config = pipeline();
  config.model.num_layers = 4;
  const std::vector<PipelineOrder> orders = compare_pipelines(config, {});
  EXPECT_EQ(orders[0].refusal, "");
  EXPECT_NE(orders[1].refusal, "");
  EXPECT_EQ(orders[2].refusal, "");
  EXPECT_NE(orders[3].refusal, "");
}

}  // namespace pipeline_comparison_test
}  // namespace weft::plan
