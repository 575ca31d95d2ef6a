// Balancing losses and biases if ranks share a micro-batch: equal to one rank's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::train {
namespace balance_test {

struct Sharing {
  LayoutCase layout;
  int cp = 1;
};

config::Config with_sharing(const config::Config& config, const Sharing& sharing) {
  config::Config shared = with_layout(config, sharing.layout);
  shared.model.context_parallel_size = sharing.cp;
  return shared;
}

std::string name_of(const Sharing& sharing) {
  return train::name_of(sharing.layout) + (sharing.cp > 1 ? fmt::format("Cp{}", sharing.cp) : "");
}

// All losses of a router, with large coefficients, and a bias; two sequences per micro-batch.
config::Config balanced(config::Config config) {
  using enum config::LoadBalancing;
  config.train.micro_batch_size = 2;
  config.model.moe_router_load_balancing_type = {AuxLoss, SeqAuxLoss, GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.2, 0.3, 0.1};
  config.model.moe_z_loss_coeff = 0.01;
  config.model.moe_router_enable_expert_bias = true;
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  return config;
}

struct Losses {
  std::vector<RouterLosses> of_step;
  std::vector<float> biases;
};

Losses train(const config::Config& config) {
  Losses all;
  on_ranks(config, [&](Engine& engine) {
    for (int step = 0; step < 3; ++step) {
      const Batch batch = batch_of(engine, step);
      const StepTotals totals =
          train_step(engine,
                     {.batch = batch, .step = step, .learning_rate = config.optimizer.lr},
                     exec::Tracing::Off);
      if (engine.rank() == 0) all.of_step.push_back(totals.router_losses);
    }
    if (engine.rank() == 0) {
      all.biases = floats_of(engine, engine.parameters().find("layers.0.route.bias").weight);
    }
  });
  return all;
}

class SharedMicroBatches : public ::testing::TestWithParam<Sharing> {};

// No data-parallel ranks: a global loss counts other micro-batches there than on one rank.
INSTANTIATE_TEST_SUITE_P(
    Ranks,
    SharedMicroBatches,
    ::testing::ValuesIn(third_or_all<Sharing>({Sharing{{.world = 2, .tp = 2}},
                                               Sharing{{.world = 4, .tp = 4}},
                                               Sharing{{.world = 2}, 2},
                                               Sharing{{.world = 4, .ep = 2, .tp = 2}, 2},
                                               Sharing{{.world = 4, .ep = 4, .tp = 4}},
                                               Sharing{{.world = 4, .ep = 2, .tp = 4, .etp = 2}},
                                               Sharing{{.world = 4, .ep = 2, .etp = 2}, 4},
                                               Sharing{{.world = 4, .ep = 2, .tp = 2, .pp = 2}}})),
    [](const auto& param_info) { return name_of(param_info.param); });

TEST_P(SharedMicroBatches, AreBalancedAsOnOneRank) {
  const config::Config alone = balanced(GetParam().layout.pp > 1 ? deep_config() : small_config());
  const Losses one = train(alone), many = train(with_sharing(alone, GetParam()));
  for (std::size_t i = 0; i < one.of_step.size(); ++i) {
    const RouterLosses &a = many.of_step[i], &b = one.of_step[i];
    EXPECT_NEAR(a.batch, b.batch, 1e-5 * b.batch) << "step " << i;
    EXPECT_NEAR(a.sequence, b.sequence, 1e-5 * b.sequence) << "step " << i;
    EXPECT_NEAR(a.global, b.global, 1e-5 * b.global) << "step " << i;
    EXPECT_NEAR(a.z, b.z, 1e-5 * b.z) << "step " << i;
  }
  EXPECT_EQ(many.biases, one.biases);
}

TEST_P(SharedMicroBatches, TrainAsOnOneRank) {
  const config::Config alone = balanced(GetParam().layout.pp > 1 ? deep_config() : small_config());
  const Outcome one = train_some(alone, 3);
  const Outcome many = train_some(with_sharing(alone, GetParam()), 3);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
  }
}

TEST(SharedMicroBatchTraining, BitsDoNotDependOnTheOrder) {
  const LayoutCase layout{.world = 4, .ep = 4, .tp = 2};
  const config::Config plain = with_layout(balanced(small_config()), layout);
  const Outcome expected = train_some(plain, 3);
  config::Config config = plain;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.fabric.jitter_us = 200;
  expect_same_bits(expected, train_some(config, 3));
}

}  // namespace balance_test
}  // namespace weft::train
