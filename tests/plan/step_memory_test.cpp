#include "weft/plan/memory/step_memory.h"

#include <gtest/gtest.h>

#include "weft/derive/derived.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace step_memory_test {

config::Config pipelined(std::int64_t vpp, bool overlap) {
  config::Config config;
  config.model.num_layers = 8;
  config.model.num_moe_experts = 4;
  config.model.expert_model_parallel_size = 2;
  config.model.pipeline_model_parallel_size = 2;
  config.model.virtual_pipeline_model_parallel_size = vpp;
  config.comm_overlap.overlap_moe_expert_parallel_comm = overlap;
  config.comm_overlap.delay_wgrad_compute = overlap;
  config.runtime.world_size = 4;
  config.train.global_batch_size = 2 * 64;
  return config;
}

TEST(StepMemory, AFewMicroBatchesKeepAsMuchAsAll) {
  for (const std::int64_t vpp : {1, 2}) {
    for (const bool overlap : {false, true}) {
      const config::Config config = pipelined(vpp, overlap);
      const std::vector<std::int64_t> bytes = activation_bytes(config);
      const auto plans = schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
      ASSERT_EQ(bytes.size(), plans.size());
      for (std::size_t rank = 0; rank < plans.size(); ++rank) {
        const schedule::Load load = expected_load(config, plans[rank].anatomy.flow);
        EXPECT_EQ(bytes[rank],
                  schedule::activation_mark(plans[rank].training, plans[rank].anatomy, load))
            << "pipeline rank " << rank << ", vpp " << vpp << (overlap ? ", overlap" : "");
      }
    }
  }
}

}  // namespace step_memory_test
}  // namespace weft::plan
