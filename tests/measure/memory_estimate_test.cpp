// The planner's estimate replaces a slow dry step: it must be near.
#include "weft/measure/memory/memory_estimate.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/measure/memory/memory_savings.h"

namespace weft::measure {
namespace memory_estimate_test {

using config::Config;

// `weft check` accepts an estimate below 85 % of the room.
constexpr double kWithin = 0.1;
// It judges by a close estimate, and says so if less than this stays free.
constexpr double kCloselyWithin = 0.02;

plan::Hardware h100() {
  return plan::find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", "h100");
}

Config wide_run() {
  Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 8;
  model.hidden_size = 1024;
  model.num_attention_heads = 16;
  model.num_query_groups = 4;
  model.seq_length = 1024;
  model.vocab_size = 8192;
  model.num_moe_experts = 16;
  model.moe_ffn_hidden_size = 512;
  model.moe_router_topk = 4;
  model.bf16 = config.optimizer.bf16 = true;
  model.params_dtype = base::DType::BF16;
  model.expert_model_parallel_size = 4;
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.train.micro_batch_size = 2;
  config.train.global_batch_size = 64;
  config.hardware.gpu = config::Gpu::H100;
  config.runtime.device = config::DeviceKind::Cuda;
  config.runtime.world_size = 8;
  return config;
}

double peak(const MemoryForecast& forecast) { return static_cast<double>(forecast.peak_bytes()); }

TEST(MemoryEstimate, IsNearADryStep) {
  for (const std::int64_t pp : {1, 2}) {
    for (const bool merges : {false, true}) {
      Config config = wide_run();
      config.model.pipeline_model_parallel_size = pp;
      if (pp > 1) config.model.virtual_pipeline_model_parallel_size = 2;
      config.comm_overlap.overlap_moe_expert_parallel_comm = merges;
      const MemoryForecast counted = forecast_memory(config, Priced::No);
      const MemoryForecast estimate = estimate_memory(config, h100(), Priced::Yes);
      ASSERT_TRUE(counted.is_predicted());
      ASSERT_EQ(estimate.stages.size(), counted.stages.size());
      EXPECT_NEAR(peak(estimate) / peak(counted), 1, kWithin) << pp << " " << merges;
      EXPECT_EQ(estimate.stages.back().rank, counted.stages.back().rank);
      const MemoryForecast closely = estimate_closely(config, h100());
      EXPECT_NEAR(peak(closely) / peak(counted), 1, kCloselyWithin) << pp << " " << merges;
      const MemoryForecast largest = count_largest(config, h100());
      EXPECT_EQ(largest.peak_bytes(), counted.peak_bytes()) << "counted, of the rank that decides";
      EXPECT_EQ(largest.largest_stage(), counted.largest_stage());
      EXPECT_GT(estimate.step_seconds, 0);
    }
  }
}

TEST(MemoryEstimate, BesideARunThatWasCountedItStartsFromThat) {
  const Config config = wide_run();
  const MemoryForecast now = forecast_memory(config, Priced::No);
  const Forecaster beside = estimates_beside(config, now, h100());
  EXPECT_EQ(beside(config, Priced::No).peak_bytes(), now.peak_bytes());
  Config saving = config;
  saving.model.recompute_granularity = config::RecomputeGranularity::Selective;
  saving.model.recompute_modules = {config::RecomputeModule::MoeAct};
  const double freed = peak(now) - peak(forecast_memory(saving, Priced::No));
  EXPECT_GT(freed, 0);
  EXPECT_NEAR((peak(now) - peak(beside(saving, Priced::No))) / freed, 1, kWithin);
}

}  // namespace memory_estimate_test
}  // namespace weft::measure
