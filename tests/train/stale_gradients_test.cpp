// No step sees gradients of the previous one, although no code zeroes them: a weight's first
// gradient of a step assigns.
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/engine_cases_support.h"

namespace weft::train {
namespace stale_gradients_test {

using config::Config;
using model::Home;

struct StaleCase {
  EngineCase engine;
  devices::DeviceKind device = devices::DeviceKind::Cpu;
};
void PrintTo(const StaleCase& at, std::ostream* out) { *out << at.engine.name; }

std::vector<StaleCase> stale_cases() {
  std::vector<EngineCase> engines = engine_cases();
  Config tied = small_config(), unfused = with_layout(small_config(), {.world = 2, .ep = 2});
  tied.model.share_embeddings_and_output_weights = true;
  to_overlap(unfused);
  unfused.model.gradient_accumulation_fusion = false;
  engines.push_back({"Tied", tied});
  engines.push_back({"Unfused", unfused});
  std::vector<StaleCase> all;
  for (const devices::DeviceKind device : devices::all_devices()) {
    if (device == devices::DeviceKind::HiddenCpu) continue;  // computes like the CPU
    for (const EngineCase& engine : engines) all.push_back({engine, device});
  }
  return all;
}

class StaleGradients : public testing::TestWithParam<StaleCase> {};

INSTANTIATE_TEST_SUITE_P(Engines,
                         StaleGradients,
                         testing::ValuesIn(stale_cases()),
                         [](const auto& test) {
                           return test.param.engine.name + devices::name_of(test.param.device);
                         });

void spoil(Engine& engine) {
  constexpr float kStale = std::numeric_limits<float>::quiet_NaN();
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (parameter.spec.is_trained()) fill(engine, parameter.gradient, kStale);
  }
  const tensor::Tensor& head = engine.parameters().tied_head_gradient();
  if (head.defined()) fill(engine, head, kStale);
}

// The norm covers whole buffers, so padding must be zero.
void expect_zero_padding(Engine& engine) {
  for (const Home home : {Home::Dense, Home::Expert}) {
    std::vector<float> rest = floats_of(engine, engine.parameters().buffer(home).gradients);
    for (const model::Parameter& parameter : engine.parameters().all()) {
      if (parameter.spec.home != home) continue;
      std::fill_n(rest.begin() + parameter.offset, parameter.gradient.elements(), 0.0f);
    }
    EXPECT_EQ(rest, std::vector<float>(rest.size(), 0.0f));
  }
}

TEST_P(StaleGradients, ChangeNoBitOfAStep) {
  const auto& [name, config, detail] = GetParam().engine;
  constexpr std::int64_t kSteps = kEngineSteps;
  const Outcome expected = GetParam().device == devices::DeviceKind::Cpu
                               ? trained_on_cpu(GetParam().engine)
                               : train_some(config, kSteps, detail, GetParam().device);
  on_ranks(
      config,
      [&](Engine& engine) {
        for (std::int64_t step = 0; step < kSteps; ++step) {
          spoil(engine);
          const Batch batch = batch_of(engine, step);
          const StepTotals totals = train_step(
              engine,
              {.batch = batch, .step = step, .learning_rate = engine.config().optimizer.lr},
              exec::Tracing::Off);
          const auto at = static_cast<std::size_t>(step);
          EXPECT_EQ(totals.loss, expected.losses[at]);
          EXPECT_EQ(totals.gradient_norm, expected.gradient_norms[at]);
        }
        expect_zero_padding(engine);
      },
      detail,
      GetParam().device);
}

std::vector<float> dense_gradients(Engine& engine) {
  return floats_of(engine, engine.parameters().buffer(Home::Dense).gradients);
}

TEST(Gradients, StayThroughAnEvaluation) {
  on_ranks(small_config(), [](Engine& engine) {
    train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::Off);
    const std::vector<float> before = dense_gradients(engine);
    forward_step(engine, batch_of(engine, 1));
    EXPECT_EQ(dense_gradients(engine), before);
  });
}

// Close if micro-batches add up; equal for a single one.
TEST(UnfusedGradients, AreThoseThatAddInTheProduct) {
  for (const LayoutCase& layout :
       {LayoutCase{}, LayoutCase{.world = 4, .ep = 2, .pp = 2, .stages = "Et|ttL"}}) {
    Config fused = with_layout(small_config(), layout);
    Config unfused = fused;
    unfused.model.gradient_accumulation_fusion = false;
    const Outcome expected = train_some(fused, 3), found = train_some(unfused, 3);
    for (std::size_t step = 0; step < expected.losses.size(); ++step) {
      EXPECT_NEAR(found.losses[step], expected.losses[step], 1e-6) << step;
      EXPECT_NEAR(found.gradient_norms[step], expected.gradient_norms[step], 1e-5) << step;
    }
    fused.train.global_batch_size = unfused.train.global_batch_size =
        fused.train.micro_batch_size * layout.world / layout.pp;
    expect_same_bits(train_some(fused, 3), train_some(unfused, 3));
  }
}

}  // namespace stale_gradients_test
}  // namespace weft::train
