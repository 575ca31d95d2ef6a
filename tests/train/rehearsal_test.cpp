// Compares a rehearsal's memory with the step's.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/train/engine_cases_support.h"
#include "weft/train/guard/order_choice.h"

namespace weft::train {
namespace rehearsal_test {

tensor::WatchedStep watched_step(Engine& engine, std::int64_t step) {
  const Batch batch = batch_of(engine, step);
  run_once(engine, engine.training(), {.batch = batch, .step = step}, exec::Tracing::Off);
  engine.program().drop_states();
  return engine.pool().rehearsal().step;
}

class Rehearsal : public testing::TestWithParam<EngineCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         Rehearsal,
                         testing::ValuesIn(third_or_all(engine_cases(), 1)),
                         [](const auto& test) { return test.param.name; });

TEST_P(Rehearsal, TakesTheBuffersOfTheStepInItsOrder) {
  const auto& [name, config, detail] = GetParam();
  const rules::JudgedConfig run = judged(config);
  on_ranks(
      config,
      [&](Engine& engine) {
        const tensor::WatchedStep real = watched_step(engine, 0);
        const tensor::WatchedStep dry = rehearse(run, engine.rank(), engine.plan()).step;
        EXPECT_EQ(dry.keys, real.keys) << "rank " << engine.rank();
      },
      detail);
}

// Large enough for buffers to have places.
config::Config routed_config() {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.seq_length = 1024;
  config.model.max_position_embeddings = 1024;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  return config;
}

void expect_known_sizes(config::Config config, devices::DeviceKind device) {
  if (device == devices::DeviceKind::Cuda) config.runtime.device = config::DeviceKind::Cuda;
  const rules::JudgedConfig run = judged(config);
  std::mutex mutex;
  on_ranks(
      config,
      [&](Engine& engine) {
        const tensor::WatchedStep dry = rehearse(run, engine.rank(), engine.plan()).step;
        const tensor::WatchedStep real = watched_step(engine, 0);
        const std::lock_guard lock(mutex);
        ASSERT_EQ(dry.keys, real.keys);
        std::int64_t fixed = 0, varying = 0;
        for (std::size_t i = 0; i < dry.keys.size(); ++i) {
          (dry.buffers[i].varies ? varying : fixed) += dry.buffers[i].bytes > 0 ? 1 : 0;
          if (!dry.buffers[i].varies) {
            EXPECT_EQ(dry.buffers[i].bytes, real.buffers[i].bytes) << "buffer " << i;
          }
        }
        EXPECT_GT(fixed, 50);
        EXPECT_GT(varying, 50);
      },
      {},
      device);
}

TEST(RehearsedSizes, AreThoseOfTheStepButForWhatItsRoutersDecide) {
  expect_known_sizes(routed_config(), devices::DeviceKind::Cpu);
}

TEST(RehearsedSizes, AreThoseOfAStepOnAGpuToo) {
  if (!devices::why_no_gpu().empty()) GTEST_SKIP() << devices::why_no_gpu();
  config::Config config = routed_config();
  expect_known_sizes(config, devices::DeviceKind::Cuda);
  config.model.params_dtype = base::DType::BF16;  // cuDNN attention
  expect_known_sizes(config, devices::DeviceKind::Cuda);
}

}  // namespace rehearsal_test
}  // namespace weft::train
