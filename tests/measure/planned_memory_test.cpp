// The planner's memory of a run equals a dry step's count.
#include <gtest/gtest.h>

#include "tests/soak.h"
#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/measure/memory/memory_forecast.h"
#include "weft/measure/runs/counted_step.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/price_memory.h"
#include "weft/rules/validate.h"
#include "weft/schedule/plan.h"

namespace weft::measure {
namespace planned_memory_test {

using config::Config;
using config::OffloadModule;
using config::RecomputeModule;

// Relative error of activations with the other buffers beside them.
constexpr double kWithin = 0.01;

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
  model.moe_ffn_hidden_size = 384;
  model.moe_router_topk = 4;
  model.bf16 = config.optimizer.bf16 = true;
  model.params_dtype = base::DType::BF16;
  config.train.global_batch_size = 32;
  config.runtime.world_size = 8;
  return config;
}

struct Layout {
  std::string name;
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, mbs = 1;
  bool merges = false;
  std::vector<RecomputeModule> again = {};
  bool all_again = false;
  std::vector<OffloadModule> offloaded = {};
  double share = 1;  // of the layers
  double host_state = 0;
  std::string dealt = {};  // layers per stage
  std::size_t dense = 0;   // first dense layers
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
  model.pipeline_model_parallel_layout = layout.dealt;
  model.moe_layer_freq = std::vector<std::int64_t>(base::at(model.num_layers), 1);
  std::fill_n(model.moe_layer_freq.begin(), layout.dense, 0);
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
  model.offload_modules = layout.offloaded;
  model.fine_grained_activation_offloading = !layout.offloaded.empty();
  config.runtime.offload_layers_share = layout.share;
  if (layout.host_state > 0) {
    config.optimizer.use_precision_aware_optimizer = true;
    config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
    config.optimizer.optimizer_cpu_offload = true;
    config.optimizer.optimizer_offload_fraction = layout.host_state;
  }
  return config;
}

std::vector<Layout> layouts() {
  using enum OffloadModule;
  return {
      {.name = "one stage"},
      {.name = "ep 4", .ep = 4},
      {.name = "ep 4, two sequences", .ep = 4, .mbs = 2},
      {.name = "ep 4, merged", .ep = 4, .merges = true},
      {.name = "pp 4", .pp = 4},
      {.name = "pp 4, ep 2", .pp = 4, .ep = 2},
      {.name = "pp 2, ep 2", .pp = 2, .ep = 2},
      {.name = "pp 2, vpp 4", .pp = 2, .vpp = 4},
      {.name = "pp 2, vpp 4, ep 2", .pp = 2, .vpp = 4, .ep = 2},
      {.name = "pp 2, vpp 4, ep 2, merged", .pp = 2, .vpp = 4, .ep = 2, .merges = true},
      {.name = "pp 4, vpp 2, ep 2, merged", .pp = 4, .vpp = 2, .ep = 2, .merges = true},
      {.name = "tp 2", .tp = 2},
      {.name = "tp 2, pp 2, ep 2", .tp = 2, .pp = 2, .ep = 2},
      {.name = "tp 2, ep 4, merged", .tp = 2, .ep = 4, .merges = true},
      {.name = "cp 2", .cp = 2},
      {.name = "pp 2, cp 2, ep 2", .pp = 2, .cp = 2, .ep = 2},
      {.name = "moe_act", .pp = 2, .ep = 2, .again = {RecomputeModule::MoeAct}},
      {.name = "layernorm, one stage", .again = {RecomputeModule::Layernorm}},
      {.name = "layernorm, moe",
       .pp = 2,
       .ep = 2,
       .again = {RecomputeModule::Layernorm, RecomputeModule::Moe}},
      {.name = "layernorm, moe, one stage",
       .again = {RecomputeModule::Layernorm, RecomputeModule::Moe}},
      {.name = "core_attn, tp 2", .tp = 2, .pp = 2, .again = {RecomputeModule::CoreAttn}},
      {.name = "moe_act, merged", .ep = 4, .merges = true, .again = {RecomputeModule::MoeAct}},
      {.name = "whole layers", .all_again = true},
      {.name = "whole layers, ep 4", .ep = 4, .all_again = true},
      {.name = "whole layers, pp 4", .pp = 4, .ep = 2, .all_again = true},
      {.name = "whole layers, pp 2, vpp 4", .pp = 2, .vpp = 4, .all_again = true},
      {.name = "whole layers, pp 2, cp 2", .pp = 2, .cp = 2, .ep = 2, .all_again = true},
      {.name = "whole layers, tp 2", .tp = 2, .ep = 2, .all_again = true},
      {.name = "attention on the host", .ep = 4, .offloaded = {CoreAttn, AttnProj}},
      {.name = "rows on the host, pp 4", .pp = 4, .ep = 2, .offloaded = {ExpertFc1, MoeAct}},
      {.name = "rows on the host, vpp 4",
       .pp = 2,
       .vpp = 4,
       .ep = 2,
       .offloaded = {ExpertFc1, MoeAct}},
      {.name = "all on the host, pp 2",
       .pp = 2,
       .ep = 2,
       .offloaded = {CoreAttn, AttnProj, ExpertFc1, MoeAct, MlpNorm, QkvLinear, AttnNorm}},
      {.name = "half on the host, pp 2",
       .pp = 2,
       .ep = 2,
       .offloaded = {CoreAttn, AttnProj, ExpertFc1, MoeAct},
       .share = 0.5},
      {.name = "rows on the host, merged",
       .pp = 2,
       .vpp = 2,
       .ep = 2,
       .merges = true,
       .offloaded = {ExpertFc1, MoeAct}},
      {.name = "inputs on the host, whole layers",
       .ep = 4,
       .all_again = true,
       .offloaded = {AttnNorm}},
      {.name = "half of the optimizer on the host", .ep = 4, .host_state = 0.5},
      {.name = "dense layers first", .pp = 2, .ep = 2, .dense = 3},
      {.name = "a head alone", .pp = 2, .vpp = 3, .ep = 2, .dealt = "Etttt|ttt|ttt|ttt|ttt|L"},
  };
}

double of_tag(const train::BytesByTag& bytes, tensor::Tag tag) {
  return static_cast<double>(bytes[static_cast<std::size_t>(tag)]);
}

TEST(PlannedMemory, IsThatOfADryStep) {
  for (const Layout& layout : third_or_all(layouts())) {
    const Config config = run_of(layout);
    const MemoryForecast forecast = forecast_memory(config, Priced::No);
    ASSERT_TRUE(forecast.is_predicted()) << layout.name;
    const std::vector<double> counted = count_step(config);
    plan::MemoryBook book(count_step);
    const std::vector<plan::MemoryPrice> ranks =
        plan::price_ranks(rules::judge(config).config, plan::Hardware{}, {}, book);
    ASSERT_EQ(ranks.size(), forecast.stages.size()) << layout.name;
    const Config judged = rules::judge(config).config;
    const std::vector<schedule::RankPlan> plans =
        schedule::plan_step(judged, grid::Grid(derive::layout_of(judged)));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const plan::MemoryPrice& planned = ranks[rank];
      const train::PredictedMemory& stage = forecast.stages[rank];
      const auto counted_state = [&](tensor::Tag tag) { return of_tag(stage.peak_bytes, tag); };
      EXPECT_EQ(planned.weights, counted_state(tensor::Tag::Weights)) << layout.name;
      EXPECT_EQ(planned.gradients, counted_state(tensor::Tag::Gradients)) << layout.name;
      // Offloaded state is cut at 64 elements per bucket, of 12 bytes.
      const double optimizer = counted_state(tensor::Tag::Optimizer);
      const auto buckets = static_cast<double>(plans[rank].anatomy.buckets.size());
      EXPECT_NEAR(planned.optimizer, optimizer, layout.host_state > 0 ? 64 * 12 * buckets : 0)
          << layout.name;
      EXPECT_NEAR((planned.activations + planned.logits + planned.buffers) / counted[rank],
                  1,
                  kWithin)
          << layout.name << ", pipeline rank " << rank << ": " << planned.activations << " + "
          << planned.logits << " + " << planned.buffers << " for " << counted[rank] << " at "
          << stage.at_peak.node;
    }
  }
}

// This build does not run fp8: the dry step is in bf16, and a formula gives the layers' saving.
TEST(PlannedMemory, InFewerBitsTheForecastIsThatOfThePlan) {
  Config config = run_of({.name = "fp8", .pp = 2, .ep = 2});
  config.runtime.device = config::DeviceKind::Cuda;
  config.runtime.backend = config::CommBackend::Nccl;
  config.hardware.gpu = config::Gpu::H100;
  const std::size_t wide = forecast_memory(config, Priced::No).peak_bytes();
  config.model.fp8 = config::Fp8Format::Hybrid;
  config.model.fp8_recipe = config::Fp8Recipe::Tensorwise;
  const MemoryForecast forecast = forecast_memory(config, Priced::No);
  ASSERT_TRUE(forecast.is_predicted());
  EXPECT_LT(forecast.peak_bytes(), wide);
  EXPECT_NE(forecast.left_out.back().find("in bf16"), std::string::npos);
  std::size_t pieces = 0;
  for (const train::PieceBytes& piece : forecast.largest().at_peak.pieces) pieces += piece.bytes;
  EXPECT_NEAR(static_cast<double>(pieces), static_cast<double>(forecast.peak_bytes()), 1e3);
  plan::MemoryBook book(count_step);
  const plan::MemoryPrice planned =
      plan::price_memory(rules::judge(config).config, plan::Hardware{}, {}, book);
  EXPECT_NEAR(planned.total() / static_cast<double>(forecast.peak_bytes()), 1, kWithin);
}

}  // namespace planned_memory_test
}  // namespace weft::measure
