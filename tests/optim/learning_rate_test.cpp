#include "weft/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <numbers>

namespace weft::optim {
namespace learning_rate_test {

config::Config config_of(config::LrDecay style, std::int64_t warmup, std::int64_t iters) {
  config::Config config;
  config.optimizer.lr = 0.8;
  config.optimizer.min_lr = 0.2;
  config.scheduler.lr_decay_style = style;
  config.scheduler.lr_warmup_iters = warmup;
  config.train.train_iters = iters;
  return config;
}

TEST(LearningRate, WarmUpClimbsInEqualStepsToThePeak) {
  for (const auto style :
       {config::LrDecay::Constant, config::LrDecay::Linear, config::LrDecay::Cosine}) {
    const config::Config config = config_of(style, 4, 100);
    EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.4);
    EXPECT_DOUBLE_EQ(learning_rate(config, 2), 0.6);
    EXPECT_DOUBLE_EQ(learning_rate(config, 3), 0.8);
    EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.8);
  }
}

TEST(LearningRate, WithoutWarmUpTheFirstStepIsThePeak) {
  for (const auto style :
       {config::LrDecay::Constant, config::LrDecay::Linear, config::LrDecay::Cosine}) {
    EXPECT_DOUBLE_EQ(learning_rate(config_of(style, 0, 10), 0), 0.8);
  }
}

TEST(LearningRate, ConstantStays) {
  const config::Config config = config_of(config::LrDecay::Constant, 2, 10);
  for (const std::int64_t step : {2, 5, 9, 10, 1000}) {
    EXPECT_DOUBLE_EQ(learning_rate(config, step), 0.8);
  }
}

TEST(LearningRate, LinearFallsEvenly) {
  const config::Config config = config_of(config::LrDecay::Linear, 4, 16);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 7), 0.65);
  EXPECT_DOUBLE_EQ(learning_rate(config, 10), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 15), 0.25);
}

TEST(LearningRate, CosineFallsAlongHalfAWave) {
  const config::Config config = config_of(config::LrDecay::Cosine, 4, 16);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.8);
  EXPECT_NEAR(learning_rate(config, 8), 0.65, 1e-12);   // a third of the way: cos 60 = 1/2
  EXPECT_NEAR(learning_rate(config, 10), 0.5, 1e-12);   // half the way
  EXPECT_NEAR(learning_rate(config, 12), 0.35, 1e-12);  // two thirds
  EXPECT_NEAR(learning_rate(config, 7), 0.5 + 0.3 * std::numbers::sqrt2 / 2, 1e-12);
}

TEST(LearningRate, PastTheEndItStaysAtTheFloor) {
  for (const auto style : {config::LrDecay::Linear, config::LrDecay::Cosine}) {
    const config::Config config = config_of(style, 4, 16);
    EXPECT_GT(learning_rate(config, 15), 0.2);
    for (const std::int64_t step : {std::int64_t{16}, std::int64_t{17}, std::int64_t{1} << 40}) {
      EXPECT_NEAR(learning_rate(config, step), 0.2, 1e-12);
    }
  }
}

TEST(LearningRate, DecayItersSetTheEndApartFromTheRun) {
  for (const auto style : {config::LrDecay::Linear, config::LrDecay::Cosine}) {
    config::Config config = config_of(style, 0, 100);
    config.scheduler.lr_decay_iters = 10;
    EXPECT_NEAR(learning_rate(config, 5), 0.5, 1e-12);
    EXPECT_NEAR(learning_rate(config, 10), 0.2, 1e-12);
    EXPECT_NEAR(learning_rate(config, 99), 0.2, 1e-12);
    config.scheduler.lr_decay_iters = 1000;
    EXPECT_GT(learning_rate(config, 99), 0.7);
  }
}

TEST(LearningRate, ADecayThatEndsInsideTheWarmUpStillEnds) {
  config::Config config = config_of(config::LrDecay::Linear, 8, 8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 7), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 8), 0.8);
  EXPECT_NEAR(learning_rate(config, 9), 0.2, 1e-12);
}

TEST(LearningRate, SequencesAndSharesAreExactPartsOfSteps) {
  config::Config config = config_of(config::LrDecay::Linear, 0, 20);
  config.train.global_batch_size = 8;
  config.scheduler.lr_warmup_samples = 20;  // two steps and a half
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.8 / 2.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 1.6 / 2.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 2), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 6), 0.8 - 0.6 * 3.5 / 17.5);
  config.scheduler.lr_decay_samples = 100;  // twelve steps and a half
  EXPECT_DOUBLE_EQ(learning_rate(config, 6), 0.8 - 0.6 * 3.5 / 10);
  config.scheduler.lr_warmup_samples = 0;
  config.scheduler.lr_warmup_fraction = 0.2;  // of 12.5 steps
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.8 / 2.5);
  config.scheduler.lr_decay_samples = std::nullopt;
  config.train.train_samples = 100;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.8 / 2.5);
}

TEST(LearningRate, WarmUpClimbsFromItsInit) {
  config::Config config = config_of(config::LrDecay::Constant, 4, 100);
  config.scheduler.lr_warmup_init = 0.4;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3), 0.8);
}

TEST(LearningRate, WsdStaysAndFallsInItsLastPart) {
  config::Config config = config_of(config::LrDecay::WarmupStableDecay, 4, 20);
  config.scheduler.lr_wsd_decay_iters = 8;  // from step 12 on
  using Wsd = config::WsdDecay;
  const std::pair<Wsd, double> halves[] = {{Wsd::Exponential, 2 / std::numbers::sqrt2 - 1},
                                           {Wsd::Linear, 0.5},
                                           {Wsd::Cosine, 0.5},
                                           {Wsd::MinusSqrt, 1 - 1 / std::numbers::sqrt2}};
  for (const auto& [style, left] : halves) {
    config.scheduler.lr_wsd_decay_style = style;
    EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.8);
    EXPECT_DOUBLE_EQ(learning_rate(config, 12), 0.8);
    EXPECT_NEAR(learning_rate(config, 16), 0.2 + 0.6 * left, 1e-12);
    EXPECT_NEAR(learning_rate(config, 20), 0.2, 1e-12);
    EXPECT_NEAR(learning_rate(config, 1000), 0.2, 1e-12);
  }
}

TEST(LearningRate, InverseSquareRootFallsFromTheWarmUpOn) {
  const config::Config config = config_of(config::LrDecay::InverseSquareRoot, 4, 100);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(config, 16), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(config, 80), 0.2);  // the floor
  EXPECT_DOUBLE_EQ(learning_rate(config, 101), 0.2);
}

}  // namespace learning_rate_test
}  // namespace weft::optim
