// Compares a dry step's counts with a real step's.
#include "weft/train/guard/memory_prediction.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/sanitized.h"
#include "tests/train/engine_cases_support.h"
#include "tests/train/even_batch_support.h"
#include "weft/comm/launch.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/train/log/model_statistics.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {
namespace memory_prediction_test {

class DryStep : public testing::TestWithParam<EngineCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts, DryStep, testing::ValuesIn(engine_cases()), [](const auto& test) {
  return test.param.name;
});

TEST_P(DryStep, TakesWhatARealOneTakes) {
  const auto& [name, config, detail] = GetParam();
  std::mutex mutex;
  std::map<int, Peaks> real;
  on_ranks(
      config,
      [&](Engine& engine) {
        run_even_steps(engine, 2);
        const std::lock_guard lock(mutex);
        real[engine.rank()] = peaks_of(engine.pool());
      },
      detail);
  const rules::JudgedConfig run = judged(config);
  SharedPlans plans(run, detail);
  for (const auto& [rank, peaks] : real) {
    comm::run_fake({.world = static_cast<int>(real.size()), .rank = rank},
                   [&](comm::Endpoint& endpoint) {
                     Engine engine(run,
                                   endpoint,
                                   kernels::make_dry_device(),
                                   {.weights = InitialWeights::Undefined, .plans = &plans});
                     run_even_steps(engine, 1);
                     EXPECT_EQ(peaks_of(engine.pool()), peaks) << "rank " << rank;
                   });
  }
}

// For one expert-parallel rank, with any routing.
void expect_as_predicted(const config::Config& config) {
  const rules::JudgedConfig run = judged(config);
  std::map<int, PredictedMemory> predicted;
  for (const PredictedMemory& stage : predict_memory(run)) predicted[stage.rank] = stage;
  EXPECT_EQ(std::ssize(predicted), config.model.pipeline_model_parallel_size);
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    const Progress progress(engine.pool(), config.rng.seed);
    for (std::int64_t step = 0; step < 2; ++step) {
      const Batch batch = batch_of(engine, step);
      train_step(engine, {.batch = batch, .step = step}, exec::Tracing::Off);
      model_statistics(engine);
    }
    const std::lock_guard lock(mutex);
    const auto found = predicted.find(engine.rank());
    if (found == predicted.end()) return;
    EXPECT_EQ(peaks_of(engine.pool()),
              (Peaks{found->second.peak_bytes, found->second.peak_total_bytes}))
        << "rank " << engine.rank();
  });
}

TEST(PredictedMemory, IsThatOfARunWithItsOwnRouter) {
  config::Config config = small_config();
  config.train.eval_interval = 0;
  expect_as_predicted(config);
  config.model.params_dtype = base::DType::BF16;
  config.model.apply_rope_fusion = true;
  expect_as_predicted(config);
  config.logger.log_params_norm = config.optimizer.log_num_zeros_in_grad = true;
  expect_as_predicted(config);
}

TEST(PredictedMemory, IsOfEveryPipelineStage) {
  config::Config config = with_layout(deep_config(), {.world = 4, .pp = 2, .vpp = 2});
  config.train.eval_interval = 0;
  expect_as_predicted(config);
}

// 10^12 elements: addresses only, no memory.
TEST(PredictedMemory, ATensorOfAnySizeTakesNoMemory) {
  const auto device = kernels::make_dry_device();
  tensor::Pool pool(*device);
  const std::int64_t elements = std::int64_t{1} << (kSanitized ? 29 : 40);
  const tensor::Tensor x(pool, tensor::DType::F32, {elements}, tensor::Tag::Weights);
  kernels::zero(*device->make_stream("compute", tensor::StreamRole::Compute), x);
  EXPECT_EQ(pool.total().peak, static_cast<std::size_t>(x.bytes()));
}

}  // namespace memory_prediction_test
}  // namespace weft::train
