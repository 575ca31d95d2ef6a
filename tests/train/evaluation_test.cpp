// Memory of evaluation: a pass without gradients that keeps no activations. hidden_device_test.cpp
// compares its loss.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"
#include "weft/train/step.h"

namespace weft::train {
namespace evaluation_test {

// Peak of one rank, which runs micro-batches in sequence.
std::size_t peak_of(std::int64_t micro_batches) {
  config::Config config = small_config();
  config.train.global_batch_size = micro_batches * config.train.micro_batch_size;
  std::size_t peak = 0;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    engine.pool().reset_peaks();
    evaluate_step(engine, {.batch = batch});
    peak = engine.pool().use(tensor::Tag::Activations).peak;
  });
  return peak;
}

TEST(EvaluationMemory, DoesNotGrowWithTheMicroBatches) {
  const std::size_t one = peak_of(1);
  EXPECT_LT(peak_of(8), one + one / 4);
}

}  // namespace evaluation_test
}  // namespace weft::train
