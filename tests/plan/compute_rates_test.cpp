#include "weft/plan/hardware/compute_rates.h"

#include <gtest/gtest.h>

namespace weft::plan {
namespace compute_rates_test {

config::Config run_on(double gb_per_second) {
  config::Config config;
  config.model.num_layers = 2;
  config.model.num_moe_experts = 8;
  config.model.expert_model_parallel_size = 4;
  config.train.global_batch_size = 16;
  config.runtime.world_size = 4;
  config.fabric.intra_node_gb_per_second = gb_per_second;
  return config;
}

// Emulated links do not change a rank's compute, however slow they are.
TEST(ComputeRates, TheRunComputesAsLongAsItDid) {
  for (const double links : {0.0, 1.0, 0.001}) {
    const config::Config config = run_on(links);
    const NominalRates rates = rates_by_compute(config, 0.3);
    EXPECT_NEAR(nominal_compute_seconds(config, rates), 0.3, 1e-6) << links;
    EXPECT_GT(nominal_step_seconds(config, rates), 0.3) << links;
  }
}

TEST(ComputeRates, WhereNothingWasComputedNothingIsFitted) {
  EXPECT_EQ(rates_by_compute(run_on(0), 0).flops_per_second, NominalRates{}.flops_per_second);
}

}  // namespace compute_rates_test
}  // namespace weft::plan
