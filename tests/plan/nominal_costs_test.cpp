#include "weft/plan/cost/nominal_costs.h"

#include <gtest/gtest.h>

#include "weft/derive/blocks.h"
#include "weft/derive/derived.h"
#include "weft/derive/dispatch.h"
#include "weft/plan/cost/nominal_work.h"

namespace weft::plan {
namespace nominal_costs_test {

config::Config moe_config() {
  config::Config config;
  config.model.num_layers = 4;
  config.model.moe_layer_freq = {1, 0, 1, 1};
  config.model.num_moe_experts = 8;
  config.model.expert_model_parallel_size = 4;
  config.model.pipeline_model_parallel_size = 2;
  config.model.num_query_groups = 2;
  config.train.micro_batch_size = 2;
  config.train.global_batch_size = 32;
  config.runtime.world_size = 8;
  return config;
}

config::Config sliced_config() {
  config::Config config = moe_config();
  config.model.moe_shared_expert_intermediate_size = 96;
  config.model.moe_shared_expert_gate = true;
  config.comm_overlap.moe_token_slices = 3;
  return config;
}

struct Costs {
  explicit Costs(const config::Config& config,
                 const NominalRates& rates = {},
                 const schedule::Detail& detail = {})
      : grid(derive::layout_of(config)),
        plans(schedule::plan_step(config, grid, config::RowBudget::AsConfigured, detail)),
        table(nominal_costs(config, grid, plans, rates)) {}

  double seconds(int rank, const char* node) const {
    const exec::sim::Cost* cost = table.find(rank, schedule::parse_node(node));
    EXPECT_NE(cost, nullptr) << node;
    return cost == nullptr ? 0 : cost->seconds;
  }

  grid::Grid grid;
  std::vector<schedule::RankPlan> plans;
  exec::sim::CostTable table;
};

TEST(NominalWork, AStepAddsUpToTheModelsOperations) {
  for (const config::Config& config : {moe_config(), sliced_config()}) {
    double flops = 0;
    for (const schedule::RankPlan& plan : Costs(config).plans) {
      const NominalWork work(config, plan.anatomy);
      for (const schedule::Entry& entry : plan.training.entries) {
        if (entry.lane != schedule::Lane::Compute) continue;
        if (entry.node.piece == schedule::Piece::Route) continue;
        flops += work.of(entry.node).flops;
      }
    }
    // Four data-parallel ranks are alike; one is counted.
    const double expected = derive::flops_per_token(config.model) *
                            static_cast<double>(derive::tokens_per_step(config));
    EXPECT_NEAR(4 * flops / expected, 1, 1e-9);
  }
}

std::vector<schedule::Part> parts_of(const config::ModelConfig& model, schedule::Piece piece) {
  for (const std::int64_t layer : {0, 1}) {
    for (const block::Block& block : derive::layer_blocks(model, layer)) {
      if (block.piece == piece) return block.parts;
    }
  }
  return {};
}

TEST(NominalWork, PartsAddUpToTheirPieceAndARecomputationToItsForward) {
  using schedule::Part;
  using schedule::Piece;
  config::Config latent = moe_config();
  latent.model.multi_latent_attention = true;
  for (const config::Config& config : {moe_config(), latent}) {
    const NominalWork work(config, Costs(config).plans[0].anatomy);
    const auto flops = [&](const std::string& node) {
      return work.of(schedule::parse_node(node)).flops;
    };
    for (const std::string turn : {"F0.", "D0.", "W0."}) {
      for (const Piece piece : {Piece::Attention, Piece::Mlp, Piece::Experts}) {
        const std::string layer = piece == Piece::Experts ? "0" : "1";
        const std::string node = layer + turn + std::string(schedule::word(piece));
        double sum = 0;
        for (const Part part : parts_of(config.model, piece)) {
          sum += flops(node + "." + std::string(schedule::word(part)));
        }
        EXPECT_NEAR(sum / flops(node), 1, 1e-12) << node;
      }
    }
    EXPECT_EQ(flops("1R0.attention.core"), flops("1F0.attention.core"));
    EXPECT_EQ(flops("1R0.attention"), flops("1F0.attention"));
    EXPECT_EQ(flops("1R0.mlp"), flops("1F0.mlp.fc1"));
  }
}

TEST(NominalCosts, EveryNodeOfASplitAndRecomputedStepHasOne) {
  const config::Config config = sliced_config();
  const Costs costs(config,
                    {},
                    {.split = {schedule::Piece::Experts},
                     .recomputed = {{schedule::Piece::Experts, schedule::Part::Act},
                                    schedule::Piece::Attention}});
  EXPECT_GT(costs.seconds(0, "0R.experts.act#1"), 0);
  EXPECT_GT(costs.seconds(0, "0R.attention"), 0);
  EXPECT_EQ(costs.seconds(0, "0R.attention"), costs.seconds(0, "0F.attention"));
}

TEST(NominalCosts, ADispatchCarriesTheRowsThatLeave) {
  const config::Config config = moe_config();
  const double rows = static_cast<double>(expected_load(config, {}).rows) * 3 / 4;
  const double bytes = rows * static_cast<double>(config.model.hidden_size * 4 + 4);
  const Costs costs(config, {.link_bytes_per_second = 1e9, .link_latency_seconds = 1e-3});
  EXPECT_NEAR(costs.seconds(0, "0F.dispatch"), bytes / 1e9 + 1e-3, 1e-12);
  EXPECT_NEAR(costs.seconds(0, "c0F.send"), costs.seconds(1, "c1F.receive"), 0);
}

TEST(NominalCosts, AFlexDispatchCarriesATokenOnceToEachRankOrMachine) {
  config::Config config = moe_config();
  config.runtime.ranks_per_node = 2;
  config.fabric.intra_node_gb_per_second = 10;
  config.fabric.inter_node_gb_per_second = 1;
  config.model.moe_token_dispatcher_type = config::Dispatcher::Flex;
  const std::int64_t experts = config.model.experts(), k = config.model.moe_router_topk;
  const auto tokens = static_cast<double>(expected_load(config, {}).tokens);
  const auto row = static_cast<double>(config.model.hidden_size * 4 + 8 * k);
  const double by_rank = tokens * derive::distinct_parts(experts, k, 4) * row;
  const double by_machine = tokens * derive::distinct_parts(experts, k, 2) * row;
  for (const auto backend : {config::FlexBackend::DeepEp, config::FlexBackend::HybridEp}) {
    config.model.moe_flex_dispatcher_backend = backend;
    EXPECT_NEAR(Costs(config).seconds(0, "0F.dispatch"),
                by_machine / 2 / 1e9 + by_rank / 2 / 10e9,
                1e-6);
  }
  // Each rank is a machine: no rows are forwarded.
  config.runtime.ranks_per_node = 1;
  config.model.moe_flex_dispatcher_backend = config::FlexBackend::DeepEp;
  EXPECT_NEAR(Costs(config).seconds(0, "0F.dispatch"), by_rank * 3 / 4 / 1e9, 1e-7);
}

// Ranks 0 to 3 and 8 to 11 are each within a machine, 4 to 7 lie in two: the others wait for their
// dispatch.
TEST(NominalCosts, AGroupThatCrossesMachinesIsCountedWhereverItIs) {
  config::Config config = moe_config();
  config.model.pipeline_model_parallel_size = 1;
  config.runtime.world_size = 12;
  config.train.global_batch_size = 24;
  config.runtime.ranks_per_node = 6;
  config.fabric.intra_node_gb_per_second = 10;
  config.fabric.inter_node_gb_per_second = 1;
  const double rows = static_cast<double>(expected_load(config, {}).rows) * 3 / 4;
  const double bytes = rows * static_cast<double>(config.model.hidden_size * 4 + 4);
  EXPECT_NEAR(Costs(config).seconds(0, "0F.dispatch"), bytes * 2 / 3 / 1e9, 1e-12);
}

TEST(NominalCosts, SlicesCarryTogetherWhatTheWholeDoes) {
  config::Config config = moe_config();
  const NominalRates rates{.link_bytes_per_second = 1e9, .link_latency_seconds = 1e-3};
  const double whole = Costs(config, rates).seconds(0, "0D.combine");
  config.comm_overlap.moe_token_slices = 3;
  const Costs costs(config, rates);
  double sum = 0;
  for (const char* node : {"0D.combine#0", "0D.combine#1", "0D.combine#2"}) {
    sum += costs.seconds(0, node) - 1e-3;
  }
  EXPECT_NEAR(sum, whole - 1e-3, 1e-12) << "each with a latency of its own";
}

TEST(NominalCosts, TheFabricOfTheConfigIsUsed) {
  config::Config config = moe_config();
  config.runtime.ranks_per_node = 2;
  config.fabric.intra_node_gb_per_second = 10;
  config.fabric.inter_node_gb_per_second = 1;
  const double rows = static_cast<double>(expected_load(config, {}).rows) * 3 / 4;
  const double bytes = rows * static_cast<double>(config.model.hidden_size * 4 + 4);
  // Two of the three peers are on another machine.
  EXPECT_NEAR(Costs(config).seconds(0, "0F.dispatch"), bytes * 2 / 3 / 1e9, 1e-12);
}

config::Config bf16_config() {
  config::Config config = moe_config();
  config.model.bf16 = true;
  config.model.params_dtype = base::DType::BF16;
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  return config;
}

// Seconds equal bytes.
const NominalRates kBytesAlone{.flops_per_second = 1e30,
                               .link_bytes_per_second = 1,
                               .link_latency_seconds = 0,
                               .memory_bytes_per_second = 1};

// Masters and moments are read and written, gradients read, weights written. Weights that are half
// of their masters are read and written.
TEST(NominalCosts, AnOptimizerMovesWhatItKeeps) {
  config::Config config = bf16_config();
  const double whole = Costs(config, kBytesAlone).seconds(0, "optimizer");
  const double each = whole / (24 + 4 + 2);  // per byte of a parameter
  config.optimizer.use_precision_aware_optimizer = true;
  const auto bytes = [&] { return Costs(config, kBytesAlone).seconds(0, "optimizer") / each; };
  EXPECT_NEAR(bytes(), 20 + 4 + 4, 1e-9);
  config.optimizer.main_grads_dtype = base::DType::BF16;
  EXPECT_NEAR(bytes(), 20 + 2 + 4, 1e-9);
  config.optimizer.exp_avg_dtype = base::DType::BF16;
  config.optimizer.exp_avg_sq_dtype = base::DType::F16;
  EXPECT_NEAR(bytes(), 12 + 2 + 4, 1e-9);
  config.optimizer.main_params_dtype = base::DType::F16;
  EXPECT_NEAR(bytes(), 12 + 2 + 2, 1e-9);
}

// Half of the bytes travel; but every weight gradient is computed in fp32, read, and added.
TEST(NominalCosts, GradientsInBf16TravelInHalfTheBytesAndAreRoundedOnTheWay) {
  config::Config config = bf16_config();
  config.optimizer.use_precision_aware_optimizer = true;
  const Costs wide(config, kBytesAlone);
  config.optimizer.main_grads_dtype = base::DType::BF16;
  const Costs narrow(config, kBytesAlone);
  EXPECT_NEAR(narrow.seconds(0, "reduce.dense"), wide.seconds(0, "reduce.dense") / 2, 1);
  const double h = static_cast<double>(config.model.hidden_size);
  const double mlp = 3 * h * static_cast<double>(config.model.dense_width()) + h;
  EXPECT_NEAR(narrow.seconds(0, "1W.mlp") - wide.seconds(0, "1W.mlp"), 8 * mlp, 1);
  config.optimizer.main_grads_dtype = base::DType::F32;
  config.model.gradient_accumulation_fusion = false;
  const Costs unfused(config, kBytesAlone);
  EXPECT_NEAR(unfused.seconds(0, "1W.mlp") - wide.seconds(0, "1W.mlp"), 12 * mlp, 1);
}

// Two instances of four ranks: a bucket within one, and a shard between the two.
TEST(NominalCosts, InstancesExchangeTheirShards) {
  config::Config config = bf16_config();
  const auto seconds = [&](std::int64_t instances, const char* node) {
    config.ddp.num_distributed_optimizer_instances = instances;
    return Costs(config, kBytesAlone).seconds(0, node);
  };
  config.model.expert_model_parallel_size = 2;
  config.runtime.world_size = 8;
  const double gathered = seconds(1, "gather.dense"), reduced = seconds(1, "reduce.dense");
  // Three quarters of a bucket, against a half; then a whole half: out and back.
  EXPECT_NEAR(seconds(2, "gather.dense"), gathered * 2 / 3, gathered / 100);
  EXPECT_NEAR(seconds(2, "reduce.dense"), reduced * 4 / 3, reduced / 100);
}

// A slice adds to all weights; parts share them.
TEST(NominalWork, WeightGradientsInPartsAndSlicesAddToTheWeightsOfEach) {
  config::Config config = bf16_config();
  config.comm_overlap.moe_token_slices = 2;
  config.optimizer.use_precision_aware_optimizer = true;
  config.optimizer.main_grads_dtype = base::DType::BF16;
  const NominalWork work(config, Costs(config).plans[0].anatomy);
  const auto bytes = [&](const char* node) {
    return work.added_gradient_bytes(schedule::parse_node(node));
  };
  const double all = bytes("0W0.experts");
  EXPECT_GT(all, 0);
  EXPECT_EQ(bytes("0W0.experts#1"), all);
  EXPECT_NEAR(bytes("0W0.experts.fc1") + bytes("0W0.experts.fc2#0"), all, 1e-6);
  EXPECT_EQ(bytes("0D0.experts"), 0);
}

TEST(NominalCosts, TwiceTheRateIsHalfTheTime) {
  const config::Config config = moe_config();
  const Costs slow(config, {.flops_per_second = 1e9}), fast(config, {.flops_per_second = 2e9});
  for (const char* node : {"0F.attention", "0D.attention", "0W.experts"}) {
    EXPECT_DOUBLE_EQ(slow.seconds(0, node), 2 * fast.seconds(0, node)) << node;
  }
}

}  // namespace nominal_costs_test
}  // namespace weft::plan
