// No step sees gradients of the previous one, although no code zeroes them: a weight's first
// gradient of a step assigns.
#include <gtest/gtest.h>

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

// The cases of the engine run so on a device whose memory the host cannot touch
// (hidden_device_test.cpp), which computes as the CPU does.
std::vector<StaleCase> stale_cases() {
  Config tied = small_config(), unfused = with_layout(small_config(), {.world = 2, .ep = 2});
  tied.model.share_embeddings_and_output_weights = true;
  to_overlap(unfused);
  unfused.model.gradient_accumulation_fusion = false;
  std::vector<StaleCase> all;
  for (const devices::DeviceKind device : devices::all_devices()) {
    if (device == devices::DeviceKind::HiddenCpu) continue;
    all.push_back({{"Tied", tied}, device});
    all.push_back({{"Unfused", unfused}, device});
    if (device == devices::DeviceKind::Cpu) continue;
    for (const EngineCase& engine : engine_cases()) all.push_back({engine, device});
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

TEST_P(StaleGradients, ChangeNoBitOfAStep) {
  const auto& [name, config, detail] = GetParam().engine;
  const devices::DeviceKind device = GetParam().device;
  expect_same_bits(train_some(config, kEngineSteps, detail, device, step_over_stale_gradients),
                   train_some(config, kEngineSteps, detail, device));
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
