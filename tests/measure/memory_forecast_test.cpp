#include "weft/measure/memory_forecast.h"

#include <gtest/gtest.h>

#include "tests/train/train_support.h"
#include "weft/derive/derived.h"
#include "weft/plan/nominal_costs.h"
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

// What a step does once, at its end, counts once however many micro-batches were left out.
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

}  // namespace memory_forecast_test
}  // namespace weft::measure
