// Vocabulary shared by tensor-parallel ranks: padded if indivisible, tied, and with equal loss on
// every rank.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"
#include "weft/base/error.h"

namespace weft::train {
namespace vocabulary_test {

constexpr int kSteps = 6;

config::Config odd_config() {
  config::Config config = small_config();
  config.model.vocab_size = 67;
  config.optimizer.lr = 1e-3;
  return config;
}

config::Config padded(config::Config config, std::int64_t divisible_by) {
  config.model.should_pad_vocab = true;
  config.model.make_vocab_size_divisible_by = divisible_by;
  return config;
}

void expect_equal_runs(const config::Config& plain, const config::Config& shared) {
  const Outcome one = train_some(plain, kSteps), many = train_some(shared, kSteps);
  expect_equal_to_rounding(many, one);
}

// On one rank, padding exists only in the logits' memory.
TEST(Vocabulary, PaddingEntersNoSoftmax) {
  expect_same_bits(train_some(odd_config(), 2), train_some(padded(odd_config(), 128), 2));
  expect_equal_runs(odd_config(),
                    with_layout(padded(odd_config(), 3), {.world = 4, .tp = 4}));  // 18, 18, 18, 13
}

TEST(Vocabulary, PaddedTablesMayBeTied) {
  config::Config config = odd_config();
  config.model.share_embeddings_and_output_weights = true;
  expect_equal_runs(config, with_layout(padded(config, 1), {.world = 2, .tp = 2}));
  expect_equal_runs(
      config,
      with_layout(padded(config, 1), {.world = 4, .tp = 2, .pp = 2, .stages = "Et|ttL"}));
}

TEST(Vocabulary, GradientsOverLogitsChangeNoBit) {
  config::Config config = with_layout(padded(odd_config(), 1), {.world = 2, .tp = 2});
  config.model.params_dtype = base::DType::BF16;
  const Outcome beside = train_some(config, 2);
  config.model.cross_entropy_loss_fusion = true;
  expect_same_bits(beside, train_some(config, 2));
}

TEST(Vocabulary, EveryRankKnowsTheSameLoss) {
  const config::Config config = with_layout(small_config(), {.world = 4, .ep = 2, .tp = 2});
  on_ranks(config, [](Engine& engine) {
    const StepTotals totals = forward_step(engine, batch_of(engine, 0));
    for (int rank = 0; rank < 4; rank += 2) {
      EXPECT_EQ(totals.rank_losses[static_cast<std::size_t>(rank)],
                totals.rank_losses[static_cast<std::size_t>(rank) + 1]);
    }
  });
}

TEST(Vocabulary, ThatRanksCannotDivideIsRefused) {
  config::Config config = with_layout(odd_config(), {.world = 2, .tp = 2});
  EXPECT_THROW(judged(config), base::ConfigError);
  EXPECT_THROW(judged(padded(config, 128)), base::ConfigError);
  EXPECT_NO_THROW(judged(padded(config, 1)));
}

}  // namespace vocabulary_test
}  // namespace weft::train
