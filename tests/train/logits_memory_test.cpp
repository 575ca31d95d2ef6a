// Loss gradients written over the logits: equal bits in less memory.
#include <gtest/gtest.h>

#include "tests/train/engine_cases_support.h"

namespace weft::train {
namespace logits_memory_test {

config::Config bf16(config::Config config) {
  config.model.params_dtype = base::DType::BF16;
  return config;
}

config::Config over_logits(config::Config config) {
  config.model.cross_entropy_loss_fusion = true;
  return config;
}

void expect_the_same_bits(const config::Config& config, devices::DeviceKind device) {
  SCOPED_TRACE(devices::name_of(device));
  expect_same_bits(train_some(config, 2, {}, device),
                   train_some(over_logits(config), 2, {}, device));
}

TEST(LogitsMemory, GradientsOverLogitsChangeNoBit) {
  for (const devices::DeviceKind device : devices::all_devices()) {
    config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
    expect_the_same_bits(config, device);
    config = bf16(config);
    expect_the_same_bits(config, device);
    to_overlap(config);
    expect_the_same_bits(config, device);
  }
}

// On a GPU, another alignment of rows may select another algorithm.
TEST(LogitsMemory, AnOddVocabularyChangesNoBitEither) {
  config::Config config = bf16(small_config());
  config.model.vocab_size = 67;
  expect_the_same_bits(config, devices::DeviceKind::Cpu);
}

TEST(LogitsMemory, OverlapChangesNoBitOfIt) {
  config::Config config = over_logits(bf16(with_layout(small_config(), {.world = 2, .ep = 2})));
  const Outcome plain = train_some(config, 2);
  to_overlap(config);
  expect_same_bits(plain, train_some(config, 2));
}

std::int64_t peak_of_step(const config::Config& config) {
  std::int64_t peak = 0;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    engine.pool().reset_peaks();
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    peak = static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).peak);
  });
  return peak;
}

// Expected reduction: the copy, less two stream gradients that the head's backward takes later,
// after the sums of exponentials are freed.
TEST(LogitsMemory, ThePeakFallsByTheCopy) {
  config::Config config = bf16(small_config());
  config.model.vocab_size = 1024;
  const std::int64_t tokens = config.model.seq_length * config.train.micro_batch_size;
  const std::int64_t copy = tokens * config.model.vocab_size * 2;
  const std::int64_t taken_later = 2 * tokens * config.model.hidden_size * 2 - tokens * 4;
  EXPECT_EQ(peak_of_step(config) - peak_of_step(over_logits(config)), copy - taken_later);
}

}  // namespace logits_memory_test
}  // namespace weft::train
