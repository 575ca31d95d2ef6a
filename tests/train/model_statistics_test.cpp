// Norm of all weights and zeros among all gradients: equal to one rank's under every layout.
#include "weft/train/log/model_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "tests/train/train_support.h"

namespace weft::train {
namespace model_statistics_test {

struct Case {
  std::string name;
  LayoutCase layout;
  bool distributed = false;
  int cp = 1;
  std::int64_t instances = 1;
  bool tied = false;
};

std::vector<Case> cases() {
  return {
      {.name = "Ep2", .layout = {.world = 2, .ep = 2}},
      {.name = "Tp2", .layout = {.world = 2, .tp = 2}},
      {.name = "Cp2", .layout = {.world = 2}, .cp = 2},
      {.name = "Dp2", .layout = {.world = 2}},
      {.name = "Dp2Distributed", .layout = {.world = 2}, .distributed = true},
      {.name = "Cp2Dp4Ep2Instances2",
       .layout = {.world = 8, .ep = 2},
       .distributed = true,
       .cp = 2,
       .instances = 2},
      {.name = "Pp2Vpp2Ep2", .layout = {.world = 4, .ep = 2, .pp = 2, .vpp = 2}},
      {.name = "Tp2Ep2Distributed", .layout = {.world = 4, .ep = 2, .tp = 2}, .distributed = true}};
}

config::Config config_of(const Case& value) {
  config::Config config = with_layout(deep_config(), value.layout);
  config.model.context_parallel_size = value.cp;
  config.model.share_embeddings_and_output_weights = value.tied;
  config.model.vocab_size = 512;  // more than the tokens: some rows have no gradient
  config.logger.log_params_norm = true;
  config.optimizer.log_num_zeros_in_grad = true;
  if (value.distributed) {
    config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
    config.ddp.num_distributed_optimizer_instances = value.instances;
    config.comm_overlap.bucket_size = 700;
  }
  return config;
}

// Statistics after one step, which must be equal on all ranks.
ModelStatistics statistics_of(const config::Config& config) {
  std::mutex mutex;
  std::optional<ModelStatistics> all;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    train_step(engine, {.batch = batch, .learning_rate = 1e-2}, exec::Tracing::Off);
    const ModelStatistics own = model_statistics(engine);
    const std::lock_guard lock(mutex);
    if (!all) all = own;
    EXPECT_EQ(own.parameter_norm, all->parameter_norm) << "rank " << engine.rank();
    EXPECT_EQ(own.gradient_zeros, all->gradient_zeros) << "rank " << engine.rank();
  });
  return all.value_or(ModelStatistics{});
}

class Statistics : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         Statistics,
                         ::testing::ValuesIn(third_or_all(cases())),
                         [](const auto& test) { return test.param.name; });

TEST_P(Statistics, AreThoseOfOneRank) {
  for (const bool tied : {false, true}) {
    Case layout = GetParam();
    layout.tied = tied;
    const ModelStatistics one = statistics_of(config_of({.tied = tied}));
    const ModelStatistics many = statistics_of(config_of(layout));
    EXPECT_NEAR(*many.parameter_norm, *one.parameter_norm, 1e-5 * *one.parameter_norm);
    EXPECT_EQ(many.gradient_zeros, one.gradient_zeros);
    EXPECT_TRUE(tied || *one.gradient_zeros > 0);
  }
}

// Computed from every parameter's own elements.
TEST(Statistics, AreSumsOverEveryParameter) {
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    config::Config config = config_of({});
    config.model.params_dtype = precision;
    on_ranks(config, [&](Engine& engine) {
      const Batch batch = batch_of(engine, 0);
      train_step(engine, {.batch = batch, .learning_rate = 1e-2}, exec::Tracing::Off);
      double squares = 0;
      std::int64_t zeros = 0;
      for (const model::Parameter& parameter : engine.parameters().all()) {
        if (!parameter.spec.is_trained()) continue;
        for (const float x : floats_of(engine, parameter.weight)) squares += double(x) * double(x);
        for (const float x : floats_of(engine, parameter.gradient)) zeros += x == 0 ? 1 : 0;
      }
      const ModelStatistics found = model_statistics(engine);
      EXPECT_NEAR(*found.parameter_norm, std::sqrt(squares), 1e-6 * std::sqrt(squares));
      EXPECT_EQ(found.gradient_zeros, zeros);
      EXPECT_GT(zeros, 0);
    });
  }
}

TEST(Statistics, AreNotComputedUnasked) {
  on_ranks(small_config(), [](Engine& engine) {
    const ModelStatistics found = model_statistics(engine);
    EXPECT_FALSE(found.parameter_norm || found.gradient_zeros);
  });
}

}  // namespace model_statistics_test
}  // namespace weft::train
