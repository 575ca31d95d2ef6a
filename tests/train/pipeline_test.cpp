// Pipelines: every split of the model into stages trains like one rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/train/train_support.h"
#include "weft/train/guard/diagnose.h"

namespace weft::train {
namespace pipeline_test {

config::Config with_router_losses(config::Config config) {
  config.model.moe_aux_loss_coeff = {0.02};
  config.model.moe_z_loss_coeff = 0.001;
  return config;
}

config::Config tied(config::Config config) {
  config.model.share_embeddings_and_output_weights = true;
  return config;
}

void expect_alike(const Outcome& many, const Outcome& one) {
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
  }
  for (const auto& [name, values] : one.weights) {
    ASSERT_EQ(many.weights.count(name), 1u) << name;
    EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-3) << name;
  }
}

class Pipelines : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Pipelines, InitialWeightsAreTheSameUnderEveryLayout) {
  static const Outcome one = train_some(deep_config(), 0);
  EXPECT_EQ(one.weights, train_some(with_layout(deep_config(), GetParam()), 0).weights);
}

TEST_P(Pipelines, TrainingEqualsTheOneRankRun) {
  const config::Config config = with_router_losses(deep_config());
  static const Outcome one = train_some(config, 4);
  expect_alike(train_some(with_layout(config, GetParam()), 4), one);
}

TEST_P(Pipelines, TiedEmbeddingsTrainAlike) {
  static const Outcome one = train_some(tied(deep_config()), 3);
  expect_alike(train_some(with_layout(tied(deep_config()), GetParam()), 3), one);
}

INSTANTIATE_TEST_SUITE_P(
    Ranks,
    Pipelines,
    ::testing::Values(
        LayoutCase{.world = 2, .pp = 2},
        LayoutCase{.world = 4, .pp = 2},
        LayoutCase{.world = 4, .ep = 2, .pp = 2},
        LayoutCase{.world = 8, .ep = 2, .pp = 2},
        LayoutCase{.world = 4, .pp = 4},
        LayoutCase{.world = 8, .ep = 2, .pp = 4},
        LayoutCase{.world = 2, .pp = 2, .vpp = 2},
        LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2},
        LayoutCase{.world = 4, .pp = 4, .vpp = 2},
        LayoutCase{.world = 8, .ep = 2, .pp = 4, .vpp = 2},
        LayoutCase{.world = 2, .pp = 2, .stages = "Etttttt|ttL"},
        LayoutCase{.world = 4, .pp = 4, .stages = "E|ttt||tttttL"},
        LayoutCase{.world = 4, .pp = 4, .stages = "Ettt|tt|ttt|L"},
        LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2, .stages = "Ett||tttttt|L"},
        LayoutCase{.world = 2, .pp = 2, .vpp = 2, .stages = "Et|||tttttttL"},
        LayoutCase{.world = 8, .ep = 2, .pp = 4, .schedule = config::PipelineSchedule::ZeroBubble},
        LayoutCase{.world = 8,
                   .ep = 2,
                   .pp = 4,
                   .vpp = 2,
                   .schedule = config::PipelineSchedule::DualPipeV},
        LayoutCase{.world = 4,
                   .pp = 2,
                   .vpp = 2,
                   .stages = "Ett|t|tttt|tL",
                   .schedule = config::PipelineSchedule::DualPipeV}),
    [](const auto& param_info) { return name_of(param_info.param); });

TEST(Pipeline, BothCopiesOfATiedTableStayEqual) {
  std::mutex mutex;
  std::vector<std::vector<float>> copies;
  const config::Config config =
      with_layout(tied(deep_config()), {.world = 8, .ep = 2, .pp = 4, .vpp = 2});
  on_ranks(config, [&](Engine& engine) {
    for (int step = 0; step < 5; ++step) {
      const Batch batch = batch_of(engine, step);
      train_step(engine,
                 {.batch = batch, .step = step, .learning_rate = config.optimizer.lr},
                 exec::Tracing::Off);
    }
    if (!engine.parameters().has("embedding.weight")) return;
    const std::lock_guard lock(mutex);
    copies.push_back(floats_of(engine, engine.parameters().find("embedding.weight").weight));
  });
  ASSERT_EQ(copies.size(), 4u);
  for (const std::vector<float>& copy : copies) EXPECT_EQ(copy, copies.front());
}

TEST(Pipeline, DenseModelsTrainAlike) {
  config::Config config = deep_config();
  config.model.num_moe_experts = std::nullopt;
  config.model.moe_ffn_hidden_size = std::nullopt;
  config.model.moe_layer_freq = {1};
  expect_alike(train_some(with_layout(config, {.world = 4, .pp = 4, .vpp = 2}), 3),
               train_some(config, 3));
}

TEST(Pipeline, Bf16FollowsFp32) {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  const Outcome exact = train_some(config, 5);
  config.model.params_dtype = base::DType::BF16;
  const Outcome rounded = train_some(config, 5);
  for (std::size_t i = 0; i < exact.losses.size(); ++i) {
    EXPECT_NEAR(rounded.losses[i], exact.losses[i], 0.03 * exact.losses[i]) << "step " << i;
  }
  EXPECT_NE(exact.losses, rounded.losses);
}

TEST(Pipeline, ForwardPassAndRouterLossesEqualTheOneRankRuns) {
  const auto totals_of = [](const LayoutCase& layout) {
    StepTotals totals;
    on_ranks(with_layout(with_router_losses(deep_config()), layout), [&](Engine& engine) {
      const StepTotals own = forward_step(engine, batch_of(engine, 0));
      for (int m = 0; m < engine.plan().shape.micro_batches; ++m) {
        EXPECT_EQ(engine.program().state(m).head.logits_TV.defined(),
                  engine.groups().self.pp + 1 == engine.groups().grid.pp());
      }
      engine.program().drop_states();
      if (engine.rank() == 0) totals = own;
    });
    return totals;
  };
  const StepTotals one = totals_of({});
  const StepTotals many = totals_of({.world = 8, .ep = 2, .pp = 4, .vpp = 2});
  EXPECT_NEAR(many.loss, one.loss, 2e-6 * one.loss);
  EXPECT_NEAR(many.router_losses.batch, one.router_losses.batch, 2e-6 * one.router_losses.batch);
  EXPECT_NEAR(many.router_losses.z, one.router_losses.z, 2e-6 * one.router_losses.z);
  EXPECT_GT(one.router_losses.batch, 0);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(many.rank_losses[rank].has_value(), rank >= 6) << rank;
  }
}

TEST(Pipeline, ARequestToStopReachesEveryStage) {
  std::atomic<int> stopped = 0;
  on_ranks(with_layout(deep_config(), {.world = 4, .pp = 4}), [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const std::atomic<bool> stop = engine.rank() == 2;
    const StepTotals totals =
        train_step(engine, {.batch = batch, .learning_rate = 0, .stop = &stop}, exec::Tracing::Off);
    if (totals.stop_requested) ++stopped;
  });
  EXPECT_EQ(stopped, 4);
}

TEST(Pipeline, WhatIsNotFiniteIsNamedWithItsStage) {
  std::string text;
  on_ranks(with_layout(deep_config(), {.world = 4, .pp = 4, .vpp = 2}), [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    if (engine.parameters().has("layers.5.mlp.fc1.weight")) {
      const tensor::Tensor& weight = engine.parameters().find("layers.5.mlp.fc1.weight").weight;
      fill(engine, weight, std::numeric_limits<float>::max());
    }
    const StepTotals totals =
        train_step(engine, {.batch = batch, .learning_rate = 1}, exec::Tracing::Off);
    EXPECT_FALSE(is_finite(totals));
    const NotFinite found = find_not_finite(engine, {.batch = batch}, totals);
    if (engine.rank() == 3) text = fmt::format("on rank {} {}", found.rank, found.what);
  });
  EXPECT_TRUE(text.starts_with("on rank 1 ")) << text;
  EXPECT_NE(text.find("the output of 5F0.mlp (layer 5) is not finite"), std::string::npos) << text;
}

}  // namespace pipeline_test
}  // namespace weft::train
