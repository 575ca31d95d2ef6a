// The whole engine on a device whose memory the host cannot address: a missing upload or download
// fails here rather than on a GPU. Reads and writes of weights, states, texts and findings are
// tested on it separately (devices::all_devices()).
#include <gtest/gtest.h>

#include "tests/train/engine_cases_support.h"

namespace weft::train {
namespace hidden_device_test {

using devices::DeviceKind;

class HiddenDevice : public testing::TestWithParam<EngineCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         HiddenDevice,
                         testing::ValuesIn(engine_cases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(HiddenDevice, TrainsToTheSameBitsOverStaleGradients) {
  const auto& [name, config, detail] = GetParam();
  expect_same_bits(
      train_some(config, kEngineSteps, detail, DeviceKind::HiddenCpu, step_over_stale_gradients),
      trained_on_cpu(GetParam()));
}

class HiddenEvaluation : public testing::TestWithParam<EngineCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         HiddenEvaluation,
                         testing::ValuesIn(third_or_all(engine_cases())),
                         [](const auto& test) { return test.param.name; });

// Totals on rank 0 after a step without gradients that keeps activations. A step that keeps none
// must have its loss.
StepTotals evaluated(const EngineCase& of, DeviceKind device) {
  StepTotals first;
  on_ranks(
      of.config,
      [&](Engine& engine) {
        const Batch batch = batch_of(engine, 0);
        const StepTotals totals = forward_step(engine, batch);
        EXPECT_EQ(evaluate_step(engine, {.batch = batch}).loss, totals.loss);
        for (int m = 0; m < std::ssize(batch); ++m)
          EXPECT_TRUE(engine.program().state(m).layers.empty());
        engine.program().drop_states();
        if (engine.rank() == 0) first = totals;
      },
      of.detail,
      device);
  return first;
}

std::int64_t dropped_rows(const StepTotals& totals) {
  std::int64_t sum = 0;
  for (const ExpertLoads& loads : totals.expert_loads) sum += loads.dropped;
  return sum;
}

TEST_P(HiddenEvaluation, HasTheBitsOfTheCpuAndTheLossOfAPassThatKeepsAll) {
  const config::ModelConfig& model = GetParam().config.model;
  const StepTotals hidden = evaluated(GetParam(), DeviceKind::HiddenCpu);
  const StepTotals plain = evaluated(GetParam(), DeviceKind::Cpu);
  EXPECT_EQ(plain.repeated, model.moe_expert_rank_capacity_factor == kTooSmall);
  EXPECT_EQ(dropped_rows(plain) > 0, model.moe_expert_capacity_factor.has_value());
  EXPECT_EQ(hidden.loss, plain.loss);
  EXPECT_EQ(hidden.rank_losses, plain.rank_losses);
  EXPECT_EQ(hidden.repeated, plain.repeated);
  EXPECT_EQ(dropped_rows(hidden), dropped_rows(plain));
  ASSERT_EQ(hidden.expert_loads.size(), plain.expert_loads.size());
  for (std::size_t i = 0; i < plain.expert_loads.size(); ++i) {
    EXPECT_EQ(hidden.expert_loads[i].max, plain.expert_loads[i].max);
  }
}

}  // namespace hidden_device_test
}  // namespace weft::train
