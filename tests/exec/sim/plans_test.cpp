// Simulation of the graphs of configs.
#include <gtest/gtest.h>

#include "tests/exec/sim/toy_support.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/bounds.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/exec/sim/timelines.h"
#include "weft/schedule/plan.h"

namespace weft::exec::sim {
namespace plans_test {

using schedule::Direction;
using schedule::Entry;
using schedule::Lane;
using schedule::Node;
using schedule::Piece;

struct Shape {
  int layers = 2, micro_batches = 4;
  int ep = 1, dp = 1, pp = 1, vpp = 1;
};

config::Config config_of(const Shape& shape) {
  config::Config config;
  config.model.num_layers = shape.layers;
  if (shape.ep > 1) config.model.num_moe_experts = 8;
  config.model.moe_layer_freq.assign(static_cast<std::size_t>(shape.layers), shape.ep > 1 ? 1 : 0);
  config.model.expert_model_parallel_size = shape.ep;
  config.model.pipeline_model_parallel_size = shape.pp;
  config.model.virtual_pipeline_model_parallel_size = shape.vpp;
  config.train.global_batch_size = std::int64_t{shape.micro_batches} * shape.dp;
  config.runtime.world_size = std::int64_t{shape.dp} * shape.pp;
  return config;
}

config::Config overlapped(config::Config config) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config.comm_overlap.overlap_p2p_comm = config.model.pipeline_model_parallel_size > 1;
  return config;
}

// Cost that differs by piece, in whole nanoseconds.
double plain_seconds(const Node& node) {
  const int ns = 20 + 7 * static_cast<int>(node.piece) + 5 * static_cast<int>(node.direction);
  return 1e-9 * ns;
}

enum class Ranks { All, OneAStage };

// Plan with a step to simulate.
class Planned {
 public:
  using NodeSeconds = std::function<double(const Node&)>;

  Planned(const config::Config& config,
          NodeSeconds seconds,
          Ranks ranks = Ranks::All,
          const schedule::Detail& detail = {})
      : grid_(derive::layout_of(config)),
        plans_(schedule::plan_step(config, grid_, config::RowBudget::AsConfigured, detail)),
        seconds_(std::move(seconds)) {
    const int count = ranks == Ranks::All ? grid_.world() : grid_.pp();
    for (int rank = 0; rank < count; ++rank) {
      const int stage = ranks == Ranks::All ? grid_.coordinate(rank).pp : rank;
      step_.graphs.push_back(&plans_[static_cast<std::size_t>(stage)].training);
    }
    step_.members = [this, ranks](int rank, const Entry& entry) {
      const derive::Pipeline& pipeline = plans_.front().anatomy.pipeline;
      return ranks == Ranks::All ? schedule::ranks_of_entry(grid_, pipeline, rank, entry)
                                 : schedule::stages_of_entry(pipeline, rank, entry);
    };
    step_.cost = [this](int rank, int entry) -> Cost {
      return {.seconds = seconds_(entries(rank)[static_cast<std::size_t>(entry)].node)};
    };
  }
  Planned(const Planned&) = delete;

  SimulatedStep& step() { return step_; }
  const std::vector<Entry>& entries(int rank) const {
    return step_.graphs[static_cast<std::size_t>(rank)]->entries;
  }

 private:
  grid::Grid grid_;
  std::vector<schedule::RankPlan> plans_;
  NodeSeconds seconds_;
  SimulatedStep step_;
};

TEST(SimulatedPlans, AccumulationIsAChainAsLongAsItsSum) {
  for (const Shape& shape : {Shape{}, Shape{.ep = 2, .dp = 2}}) {
    Planned plan(config_of(shape), plain_seconds);
    double sum = 0;
    for (const Entry& entry : plan.entries(0)) {
      // Runs during the ranks' exchange of counts, which takes longer.
      const bool hidden =
          entry.node.piece == Piece::Permute && entry.node.direction == Direction::F;
      if (!hidden) sum += plain_seconds(entry.node);
    }
    EXPECT_NEAR(simulate(plan.step()).step_seconds(), sum, 1e-12);
  }
}

// Recomputation takes time, and the simulated trace names it.
TEST(SimulatedPlans, PartsAndRecomputationsAreNodesAsAnyOther) {
  const std::vector<Piece> split{Piece::Attention, Piece::Mlp, Piece::Experts};
  const schedule::Detail detail{
      .split = split,
      .recomputed = {{Piece::Attention, schedule::Part::Core}, Piece::Route}};
  const config::Config config = config_of({.layers = 4, .ep = 2, .dp = 4, .pp = 2});
  for (const config::Config& order : {config, overlapped(config)}) {
    Planned whole(order, plain_seconds, Ranks::All, {.split = split, .recomputed = {}});
    Planned again(order, plain_seconds, Ranks::All, detail);
    const Result result = simulate(again.step());
    EXPECT_GT(result.step_ns, simulate(whole.step()).step_ns);
    const CostTable costs = measure(timelines_of(again.step(), result));
    const Node node = schedule::parse_node("0R.attention.core");
    ASSERT_NE(costs.find(0, node), nullptr);
    EXPECT_NEAR(costs.find(0, node)->seconds, plain_seconds(node), 1e-12);
  }
}

// Nodes of layers cost equally much, other nodes 0.
double layer_seconds(const Node& node) { return node.layer == schedule::kNone ? 0 : 3e-9; }

TEST(SimulatedPlans, OneForwardOneBackwardHasTheKnownBubble) {
  for (const int pp : {2, 4}) {
    for (const int micro_batches : {4, 9}) {
      Planned plan(config_of({.layers = pp, .micro_batches = micro_batches, .pp = pp}),
                   layer_seconds);
      int nodes = 0;  // per layer and micro-batch
      for (const Entry& entry : plan.entries(0)) {
        nodes += entry.node.layer == 0 && entry.node.micro_batch == 0;
      }
      EXPECT_EQ(simulate(plan.step()).step_ns, 3 * nodes * (micro_batches + pp - 1));
    }
  }
}

TEST(SimulatedPlans, ARankForItsStageGivesTheStepOfAllRanks) {
  for (const config::Config& config :
       {config_of({.layers = 4, .ep = 2, .dp = 4, .pp = 2}),
        overlapped(config_of({.layers = 8, .ep = 2, .dp = 4, .pp = 2, .vpp = 2}))}) {
    Planned all(config, plain_seconds), stages(config, plain_seconds, Ranks::OneAStage);
    ASSERT_GT(all.step().graphs.size(), stages.step().graphs.size());
    EXPECT_EQ(simulate(all.step()).step_ns, simulate(stages.step()).step_ns);
  }
}

// Every rank sends equally much to every other.
Wire even_wire() {
  return {fabric_of(1, 4), [](const Node&, std::span<const int> members) {
            std::vector<grid::Transfer> transfers;
            for (const int from : members) {
              for (const int to : members) {
                if (from != to) transfers.push_back({from, to, 150});
              }
            }
            return transfers;
          }};
}

TEST(SimulatedPlans, CostsOfThePlainOrderPredictTheInterleavedOne) {
  const config::Config config = config_of({.layers = 3, .ep = 2, .dp = 2});
  Planned plain(config, plain_seconds), interleaved(overlapped(config), plain_seconds);
  plain.step().wire = interleaved.step().wire = even_wire();
  const Result plain_result = simulate(plain.step()),
               interleaved_result = simulate(interleaved.step());
  SimulatedStep predicted = interleaved.step();
  predicted.wire.reset();
  predicted.cost = measure(timelines_of(plain.step(), plain_result)).for_graphs(predicted.graphs);
  EXPECT_EQ(simulate(predicted).step_ns, interleaved_result.step_ns);
  EXPECT_LT(interleaved_result.step_ns, plain_result.step_ns);
  const Bounds bounds = bounds_of(interleaved.step());
  EXPECT_GE(interleaved_result.step_seconds(), bounds.step_seconds());
  EXPECT_NEAR(bounds.compute_seconds, bounds_of(predicted).compute_seconds, 1e-12);
  EXPECT_NEAR(bounds.communication_seconds, bounds_of(predicted).communication_seconds, 1e-12);
}

// Rows travel 100 ns each way, experts take 400 ns per direction, shared experts 100 ns per part
// and direction; slices share it evenly. Other nodes are free.
double moe_seconds(const Node& node, int slices) {
  if (node.piece == Piece::Dispatch || node.piece == Piece::Combine) return 100e-9 / slices;
  if (node.piece == Piece::Experts) return 400e-9 / slices;
  return node.piece == Piece::Shared ? 100e-9 : 0;
}

TEST(SimulatedPlans, OnlyTheFirstAndTheLastSliceTravelInTheOpen) {
  config::Config config = config_of({.layers = 1, .micro_batches = 1, .ep = 2, .dp = 2});
  for (const int slices : {1, 2, 4}) {
    config.comm_overlap.moe_token_slices = slices;
    Planned plan(config, [&](const Node& node) { return moe_seconds(node, slices); });
    EXPECT_EQ(simulate(plan.step()).step_ns, 3 * 400 + 4 * 100 / slices) << slices;
  }
}

TEST(SimulatedPlans, SharedExpertsHideWhatTravels) {
  config::Config config = config_of({.layers = 1, .micro_batches = 1, .ep = 2, .dp = 2});
  config.model.moe_shared_expert_intermediate_size = 64;
  const auto step_ns = [&] {
    Planned plan(config, [](const Node& node) { return moe_seconds(node, 1); });
    return simulate(plan.step()).step_ns;
  };
  EXPECT_EQ(step_ns(), 3 * 400 + 6 * 100 + 4 * 100);
  config.model.moe_shared_expert_overlap = true;
  EXPECT_EQ(step_ns(), 3 * 400 + 6 * 100);
}

}  // namespace plans_test
}  // namespace weft::exec::sim
