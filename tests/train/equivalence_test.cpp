// Equal numbers: bit by bit with equal layouts, up to rounding otherwise.
#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/train/train_support.h"

namespace weft::train {
namespace equivalence_test {

TEST(Training, TheSameSeedGivesTheSameBitsTwice) {
  const config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  expect_same_bits(train_some(config, 4), train_some(config, 4));
}

TEST(Training, AnotherSeedGivesOtherLosses) {
  config::Config config = small_config();
  const Outcome one = train_some(config, 1);
  config.rng.seed = 77;
  EXPECT_NE(one.losses, train_some(config, 1).losses);
}

TEST(Training, BitsDoNotDependOnTheNumberOfThreads) {
  config::Config config = small_config();
  const Outcome one = train_some(config, 3);
  for (const int threads : {2, 3}) {
    config.runtime.threads_per_rank = threads;
    expect_same_bits(one, train_some(config, 3));
  }
}

TEST(Training, BitsDependNeitherOnTheFabricNorOnTheCores) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  const Outcome free = train_some(config, 2);
  config.runtime.pin_ranks = true;
  config.runtime.ranks_per_node = 1;
  config.fabric.inter_node_gb_per_second = 0.05;
  config.fabric.inter_node_latency_us = 50;
  config.fabric.jitter_us = 500;
  expect_same_bits(free, train_some(config, 2));
}

class Layouts : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layouts, InitialWeightsAreTheSameUnderEveryLayout) {
  const Outcome one = train_some(small_config(), 0);
  EXPECT_EQ(one.weights, train_some(with_layout(small_config(), GetParam()), 0).weights);
}

TEST_P(Layouts, TrainingEqualsTheOneRankRun) {
  config::Config config = small_config();
  config.model.moe_aux_loss_coeff = {0.02};
  config.model.moe_z_loss_coeff = 0.001;
  const Outcome one = train_some(config, 4);
  const Outcome many = train_some(with_layout(config, GetParam()), 4);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
  }
  for (const auto& [name, values] : one.weights) {
    EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-3) << name;
  }
}

TEST_P(Layouts, TiedEmbeddingsTrainAlike) {
  config::Config config = small_config();
  config.model.share_embeddings_and_output_weights = true;
  const Outcome one = train_some(config, 3);
  const Outcome many = train_some(with_layout(config, GetParam()), 3);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         Layouts,
                         ::testing::Values(LayoutCase{.world = 2, .ep = 2},
                                           LayoutCase{.world = 2, .ep = 1},
                                           LayoutCase{.world = 4, .ep = 2},
                                           LayoutCase{.world = 8, .ep = 8}),
                         [](const auto& param_info) { return name_of(param_info.param); });

TEST(Training, TheLossFallsForEveryKindOfModel) {
  if (kSanitized) GTEST_SKIP() << "skipped: two steps are too few for a loss to fall";
  for (const config::QkNorm norm :
       {config::QkNorm::None, config::QkNorm::Head, config::QkNorm::Projection}) {
    config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
    config.model.qk_layernorm = norm;
    config.model.moe_router_pre_softmax = norm == config::QkNorm::Projection;
    const Outcome outcome = train_some(config, 25);
    EXPECT_LT(outcome.losses.back(), outcome.losses.front() - 0.3);
  }
}

TEST(Training, Bf16FollowsFp32) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  const Outcome exact = train_some(config, 10);
  config.model.params_dtype = base::DType::BF16;
  const Outcome rounded = train_some(config, 10);
  for (std::size_t i = 0; i < exact.losses.size(); ++i) {
    EXPECT_NEAR(rounded.losses[i], exact.losses[i], 0.03 * exact.losses[i]) << "step " << i;
  }
  EXPECT_NE(exact.losses, rounded.losses);
}

}  // namespace equivalence_test
}  // namespace weft::train
