// Chunked logits: equal training in less memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "tests/train/train_support.h"

namespace weft::train {
namespace logits_chunk_test {

config::Config with_chunk(std::int64_t tokens) {
  config::Config config = with_layout(small_config(), {.world = 2});
  config.model.params_dtype = base::DType::BF16;
  config.model.vocab_size = 4096;  // the head needs more memory than the layers
  config.runtime.logits_chunk = tokens;
  return config;
}

TEST(LogitsInChunks, AreThoseOfAllTokens) {
  const Outcome whole = train_some(with_chunk(0), 4);
  for (const std::int64_t tokens : {1, 7, 100000}) {
    const Outcome parts = train_some(with_chunk(tokens), 4);
    ASSERT_EQ(parts.losses.size(), whole.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-3 * whole.losses[i]) << i;
    }
    EXPECT_NEAR(parts.losses[0], whole.losses[0], 1e-6 * whole.losses[0]);
  }
}

std::size_t peak_of(const config::Config& config) {
  std::size_t peak = 0;
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::Off);
    const std::lock_guard lock(mutex);
    peak = std::max(peak, engine.pool().total().peak);
  });
  return peak;
}

TEST(LogitsInChunks, TakeAboutHalfOfTheirMemory) {
  const config::Config config = with_chunk(0);
  const auto logits = static_cast<std::size_t>(config.train.micro_batch_size *
                                               config.model.seq_length * config.model.vocab_size) *
                      sizeof(float);
  const std::size_t whole = peak_of(config), parts = peak_of(with_chunk(4));
  EXPECT_LT(parts + logits / 3, whole);
}

}  // namespace logits_chunk_test
}  // namespace weft::train
