#include "weft/plan/simulated_run.h"

#include <gtest/gtest.h>

#include "weft/derive/derived.h"
#include "weft/plan/price.h"
#include "weft/trace/dominant_wall.h"
#include "weft/trace/walls.h"

namespace weft::plan {
namespace simulated_run_test {

Hardware h100() {
  return find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", "h100");
}

config::Config run_of(std::int64_t pp, bool merges) {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 8;
  model.hidden_size = 2048;
  model.num_attention_heads = 32;
  model.num_query_groups = 4;
  model.kv_channels = 128;
  model.seq_length = 4096;
  model.vocab_size = 32000;
  model.num_moe_experts = 64;
  model.moe_ffn_hidden_size = 768;
  model.moe_router_topk = 8;
  model.expert_model_parallel_size = 16;
  model.pipeline_model_parallel_size = pp;
  model.bf16 = true;
  model.params_dtype = config::Precision::Bf16;
  model.cuda_graph_impl = config::CudaGraphImpl::FullIteration;
  if (pp > 1 && merges) model.virtual_pipeline_model_parallel_size = 2;
  config.comm_overlap.overlap_moe_expert_parallel_comm = merges;
  config.train.global_batch_size = 16 * 8;
  config.runtime.world_size = 16 * pp;
  return config;
}

// Layers simulated alone and turns of a pipeline, against the graph with every node.
TEST(SimulatedRun, TheRealScheduleTakesAsLongAsThePrice) {
  for (const std::int64_t pp : {1, 2}) {
    for (const bool merges : {false, true}) {
      const config::Config config = run_of(pp, merges);
      const SimulatedRun run = simulate_run(config, config, h100());
      const double priced = price_step(config, h100()).step_ms;
      EXPECT_EQ(run.micro_batches, 8);
      EXPECT_NEAR(run.step_ms / priced, 1, 0.04) << "pp " << pp << ", merged " << merges;
    }
  }
}

// What goes to the host travels at the pace of the GPU's own link, in the price and in the
// schedule.
TEST(SimulatedRun, CopiesToTheHostTakeWhatThePriceSays) {
  const Hardware gb200 =
      find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", "gb200");
  config::Config config = run_of(2, false);
  config.hardware.gpu = config::Gpu::Gb200;
  config.model.fine_grained_activation_offloading = true;
  config.model.offload_modules = {config::OffloadModule::CoreAttn,
                                  config::OffloadModule::AttnProj,
                                  config::OffloadModule::ExpertFc1,
                                  config::OffloadModule::MoeAct};
  const double priced = price_step(config, gb200).step_ms;
  EXPECT_NEAR(simulate_run(config, config, gb200).step_ms / priced, 1, 0.06);
}

// What the host takes of a step lies in the trace as it does in the price: nobody who looks at the
// trace takes launches for compute.
TEST(SimulatedRun, ItsTraceHasTheWallsOfThePrice) {
  for (const bool merges : {false, true}) {
    config::Config config = run_of(1, merges);
    config.model.cuda_graph_impl = config::CudaGraphImpl::None;
    const Price price = price_step(config, h100());
    const SimulatedRun run = simulate_run(config, config, h100());
    const trace::Walls walls = trace::walls_of(run.timelines, trace::Clocks::Shared).front().walls;
    const auto share = [&](double ms) { return ms / price.step_ms; };
    ASSERT_GT(share(price.exposed.host), 0.05) << "a run that the host slows down";
    EXPECT_NEAR(walls.host / walls.step, share(price.exposed.host), 0.06) << merges;
    EXPECT_NEAR(walls.compute / walls.step, share(price.compute.total()), 0.06) << merges;
    EXPECT_EQ(trace::dominant_wall(trace::lost_of(walls), walls.step), price.wall) << merges;
  }
}

TEST(SimulatedRun, HasATimelineOfEveryPipelineRank) {
  const config::Config config = run_of(2, false);
  const SimulatedRun run = simulate_run(config, config, h100());
  ASSERT_EQ(run.timelines.size(), 2u);
  EXPECT_FALSE(run.timelines.back().spans.empty());
}

TEST(SimulatedRun, EveryNodeHasACost) {
  const config::Config config = run_of(2, true);
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  const exec::sim::CostTable costs = hardware_costs(config, grid, plans, h100());
  for (const schedule::RankPlan& plan : plans) {
    for (const schedule::Entry& entry : plan.training.entries) {
      const exec::sim::Cost* cost = costs.find(plan.anatomy.pp_rank, entry.node);
      ASSERT_NE(cost, nullptr) << schedule::print(entry.node);
      const bool is_empty = entry.node.piece != schedule::Piece::Experts &&
                            entry.node.piece != schedule::Piece::Dispatch;
      EXPECT_TRUE(is_empty || cost->seconds > 0) << schedule::print(entry.node);
    }
  }
}

}  // namespace simulated_run_test
}  // namespace weft::plan
