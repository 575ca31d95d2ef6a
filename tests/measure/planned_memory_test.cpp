// What the planner says of a run's activations is what a dry step of the engine counts.
#include <gtest/gtest.h>

#include "weft/base/casts.h"
#include "weft/measure/memory_forecast.h"
#include "weft/plan/price.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace planned_memory_test {

using config::Config;

// Of what is kept; where experts run again, what lives inside their backward is most of it.
constexpr double kWithin = 0.015, kWithinAgain = 0.1;

// Wide enough that what lives inside a node is little beside what is kept.
Config small_run() {
  Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 16;
  model.hidden_size = 512;
  model.ffn_hidden_size = 1024;
  model.num_attention_heads = 8;
  model.num_query_groups = 2;
  model.qk_layernorm = config::QkNorm::Head;
  model.seq_length = 512;
  model.vocab_size = 4096;
  model.num_moe_experts = 8;
  model.moe_ffn_hidden_size = 256;
  model.moe_router_topk = 4;
  model.bf16 = config.optimizer.bf16 = true;
  model.params_dtype = config::Precision::Bf16;
  config.train.global_batch_size = 32;
  config.runtime.world_size = 8;
  return config;
}

struct Layout {
  std::string name;
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, mbs = 1;
  bool merges = false;
  std::vector<config::RecomputeModule> again = {};
  bool all_again = false;
};

Config run_of(const Layout& layout) {
  Config config = small_run();
  config::ModelConfig& model = config.model;
  model.tensor_model_parallel_size = layout.tp;
  model.sequence_parallel = layout.tp > 1;
  model.pipeline_model_parallel_size = layout.pp;
  if (layout.vpp > 1 || (layout.merges && layout.pp > 1)) {
    model.virtual_pipeline_model_parallel_size = layout.vpp;
  }
  model.context_parallel_size = layout.cp;
  model.expert_model_parallel_size = layout.ep;
  config.train.micro_batch_size = layout.mbs;
  config.comm_overlap.overlap_moe_expert_parallel_comm = layout.merges;
  config.comm_overlap.delay_wgrad_compute = layout.merges;
  if (!layout.again.empty()) {
    model.recompute_granularity = config::RecomputeGranularity::Selective;
    model.recompute_modules = layout.again;
  }
  if (layout.all_again) {
    model.recompute_granularity = config::RecomputeGranularity::Full;
    model.recompute_method = config::RecomputeMethod::Uniform;
    model.recompute_num_layers = 1;
  }
  return config;
}

double counted(const train::PredictedMemory& stage) {
  return static_cast<double>(stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Activations)]);
}

TEST(PlannedMemory, ActivationsAreThoseOfADryStep) {
  using config::RecomputeModule;
  const std::vector<Layout> layouts{
      {.name = "ep 4", .ep = 4},
      {.name = "ep 4, two sequences", .ep = 4, .mbs = 2},
      {.name = "ep 4, merged", .ep = 4, .merges = true},
      {.name = "pp 4, ep 2", .pp = 4, .ep = 2},
      {.name = "pp 2, ep 2", .pp = 2, .ep = 2},
      {.name = "pp 2, vpp 4, ep 2", .pp = 2, .vpp = 4, .ep = 2},
      {.name = "pp 2, vpp 4, ep 2, merged", .pp = 2, .vpp = 4, .ep = 2, .merges = true},
      {.name = "tp 2, pp 2, ep 2", .tp = 2, .pp = 2, .ep = 2},
      {.name = "pp 2, cp 2, ep 2", .pp = 2, .cp = 2, .ep = 2},
      {.name = "moe_act", .pp = 2, .ep = 2, .again = {RecomputeModule::MoeAct}},
      {.name = "layernorm, moe",
       .pp = 2,
       .ep = 2,
       .again = {RecomputeModule::Layernorm, RecomputeModule::Moe}},
      {.name = "whole layers", .ep = 4, .all_again = true},
      {.name = "whole layers, pp 4", .pp = 4, .ep = 2, .all_again = true},
      {.name = "whole layers, pp 2, cp 2", .pp = 2, .cp = 2, .ep = 2, .all_again = true},
  };
  for (const Layout& layout : layouts) {
    const Config config = run_of(layout);
    const MemoryForecast forecast = forecast_memory(config, Priced::No);
    ASSERT_TRUE(forecast.is_predicted()) << layout.name;
    plan::MemoryBook book;
    const std::vector<plan::MemoryPrice> ranks =
        plan::price_ranks(rules::judge(config).config, plan::Hardware{}, {}, book);
    ASSERT_EQ(ranks.size(), forecast.stages.size()) << layout.name;
    const bool runs_again = layout.all_again || layout.again.size() > 1;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const double planned = ranks[rank].activations + ranks[rank].logits;
      EXPECT_NEAR(planned / counted(forecast.stages[rank]), 1, runs_again ? kWithinAgain : kWithin)
          << layout.name << ", pipeline rank " << rank;
    }
  }
}

}  // namespace planned_memory_test
}  // namespace weft::measure
