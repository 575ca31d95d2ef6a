#include "weft/plan/price/simulated_run.h"

#include <gtest/gtest.h>

#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/trace/exposure/dominant_wall.h"
#include "weft/trace/exposure/walls.h"

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
  model.params_dtype = base::DType::BF16;
  model.cuda_graph_impl = config::CudaGraphImpl::FullIteration;
  if (pp > 1 && merges) model.virtual_pipeline_model_parallel_size = 2;
  config.comm_overlap.overlap_moe_expert_parallel_comm = merges;
  config.train.global_batch_size = 16 * 8;
  config.runtime.world_size = 16 * pp;
  return config;
}

// Compares layers simulated alone, plus turns of a pipeline, with the graph of all nodes.
TEST(SimulatedRun, TheRealScheduleTakesAsLongAsThePrice) {
  for (const std::int64_t pp : {1, 2}) {
    for (const bool merges : {false, true}) {
      const config::Config config = run_of(pp, merges);
      const SimulatedRun run = simulate_run(config, config, h100());
      const double priced = price_step(config, h100()).step_ms;
      EXPECT_EQ(run.shortened.micro_batches, 8);
      EXPECT_NEAR(run.step_ms / priced, 1, 0.04) << "pp " << pp << ", merged " << merges;
    }
  }
}

// Copies to the host run at the rate of the GPU's own link, in the price and in the schedule.
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

// Host time appears in the trace as in the price: launches do not look like compute.
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

// Compute lost to transfers counts as communication, in the price and in the trace: compute is as
// long in a merged order as in a plain one.
TEST(SimulatedRun, ItsTraceTellsTheComputeOfThePriceInEveryOrder) {
  std::vector<trace::Walls> walls;
  for (const bool merges : {false, true}) {
    const config::Config config = run_of(1, merges);
    const Price price = price_step(config, h100());
    const SimulatedRun run = simulate_run(config, config, h100());
    walls.push_back(
        trace::walls_of(run.timelines, trace::Clocks::Shared, run.shortened).front().walls);
    EXPECT_NEAR(walls.back().compute / price.compute.total(), 1, 0.03) << merges;
    EXPECT_NEAR(walls.back().communication + walls.back().slowed,
                price.exposed.communication(),
                0.03 * price.step_ms);
  }
  EXPECT_EQ(walls[0].slowed, 0) << "nothing travels beside compute";
  EXPECT_GT(walls[1].slowed, 0.01 * walls[1].step);
  EXPECT_NEAR(walls[1].compute / walls[0].compute, 1, 0.005);
}

// One part of the trace represents the missing micro-batches: every wall of every rank, and every
// kind of communication, covers the whole step.
TEST(SimulatedRun, AShortTraceTellsTheWallsOfTheWholeStep) {
  constexpr double kOfStep = 0.005;  // the simulation does not converge to the nanosecond
  for (const char* order : {"plain", "chunks", "merged", "zb_h1"}) {
    SCOPED_TRACE(order);
    config::Config config = run_of(8, order == std::string("merged"));
    config.model.num_layers = 16;
    config.train.global_batch_size = 16 * 64;
    if (order == std::string("chunks")) config.model.virtual_pipeline_model_parallel_size = 2;
    if (order == std::string("zb_h1")) {
      config.runtime.pipeline_schedule = config::PipelineSchedule::ZeroBubble;
    }
    const SimulatedRun run = simulate_run(config, config, h100());
    ASSERT_TRUE(run.shortened.is_short());
    EXPECT_EQ(run.shortened.micro_batches, 64);
    const std::vector<trace::Timeline> whole = whole_timelines(config, h100());
    const auto told = trace::walls_of(run.timelines, trace::Clocks::Shared, run.shortened);
    const auto right = trace::walls_of(whole, trace::Clocks::Shared);
    ASSERT_EQ(told.size(), right.size());
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      SCOPED_TRACE(rank);
      const trace::Walls &one = told[rank].walls, &other = right[rank].walls;
      const double near = kOfStep * other.step;
      EXPECT_NEAR(one.step, run.step_ms, 1e-3);
      EXPECT_NEAR(one.step, other.step, near);
      EXPECT_NEAR(one.compute, other.compute, near);
      EXPECT_NEAR(one.gemm, other.gemm, near);
      EXPECT_NEAR(one.slowed, other.slowed, near);
      EXPECT_NEAR(one.communication, other.communication, near);
      EXPECT_NEAR(one.bubble, other.bubble, near);
      EXPECT_NEAR(one.late, other.late, near);
      EXPECT_NEAR(one.host, other.host, near);
      EXPECT_NEAR(one.idle, other.idle, near);
    }
    const trace::Exposure short_one =
        trace::analyse(run.timelines, trace::Clocks::Shared, run.shortened);
    const trace::Exposure whole_one = trace::analyse(whole);
    for (const auto& [kind, time] : whole_one.kinds) {
      SCOPED_TRACE(kind);
      const double near = kOfStep * run.step_ms;
      EXPECT_NEAR(short_one.kinds.at(kind).exposed_ms, time.exposed_ms, near);
      EXPECT_NEAR(short_one.kinds.at(kind).communication_ms, time.communication_ms, 4 * near);
    }
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
