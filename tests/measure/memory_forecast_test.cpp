#include "weft/measure/memory/memory_forecast.h"

#include <gtest/gtest.h>

#include "tests/train/train_support.h"
#include "weft/derive/derived.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/rules/validate.h"
#include "weft/train/engine.h"

namespace weft::measure {
namespace memory_forecast_test {

double whole_step_seconds(const config::Config& config) {
  const rules::JudgedConfig run = train::judged(config);
  const grid::Grid grid(derive::layout_of(run));
  return plan::simulate_nominal(run,
                                grid,
                                train::verified_plans(run),
                                plan::rates_of(run->hardware))
      .step_seconds();
}

// Work at the end of a step counts once, for any number of omitted micro-batches.
TEST(MemoryForecast, AShortenedStepHasTheTimeOfTheWholeOne) {
  for (const train::LayoutCase& layout :
       {train::LayoutCase{.world = 2},
        train::LayoutCase{.world = 2, .pp = 2},
        train::LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2}}) {
    SCOPED_TRACE(train::name_of(layout));
    config::Config config = train::with_layout(train::deep_config(), layout);
    config.train.global_batch_size = 80;
    const MemoryForecast forecast = forecast_memory(config, Priced::Yes);
    EXPECT_LT(forecast.run, forecast.micro_batches);
    const double whole = whole_step_seconds(config);
    EXPECT_NEAR(forecast.step_seconds, whole, 1e-6 * whole);
  }
}

// Inputs and numbers of all micro-batches exist for the whole step, including omitted ones.
TEST(MemoryForecast, AShortenedStepHasTheBytesOfTheWholeOne) {
  for (const train::LayoutCase& layout :
       {train::LayoutCase{.world = 1},
        train::LayoutCase{.world = 2, .ep = 2},
        train::LayoutCase{.world = 2, .pp = 2},
        train::LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2}}) {
    SCOPED_TRACE(train::name_of(layout));
    config::Config config = train::with_layout(train::deep_config(), layout);
    config.train.global_batch_size = 40;
    config::Config padded = config, saving = config;
    padded.model.pad_token_id = 0;
    saving.model.recompute_granularity = config::RecomputeGranularity::Selective;
    saving.model.recompute_modules = {config::RecomputeModule::Layernorm};
    saving.model.fine_grained_activation_offloading = true;
    saving.model.offload_modules = {config::OffloadModule::CoreAttn, config::OffloadModule::MoeAct};
    config::Config merged = saving;
    merged.comm_overlap.overlap_moe_expert_parallel_comm = true;
    merged.comm_overlap.delay_wgrad_compute = true;
    for (const config::Config& each : {config, padded, saving, merged}) {
      const rules::Verdict verdict = rules::judge(each);
      if (!verdict.judged) continue;  // overlap needs experts on several ranks
      SCOPED_TRACE(each.comm_overlap.overlap_moe_expert_parallel_comm ? "merged" : "plain");
      const MemoryForecast forecast = forecast_memory(each, Priced::No);
      EXPECT_LT(forecast.run, forecast.micro_batches);
      const std::vector<train::PredictedMemory> whole = train::predict_memory(*verdict.judged);
      ASSERT_EQ(forecast.stages.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(forecast.stages[i].peak_total_bytes, whole[i].peak_total_bytes) << "stage " << i;
        EXPECT_EQ(forecast.stages[i].peak_bytes, whole[i].peak_bytes) << "stage " << i;
        EXPECT_EQ(forecast.stages[i].at_peak.bytes, whole[i].at_peak.bytes) << "stage " << i;
      }
    }
  }
}

}  // namespace memory_forecast_test
}  // namespace weft::measure
