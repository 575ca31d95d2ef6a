#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {
namespace adamw_test {

using devices::DeviceKind;
using devices::Workbench;
using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;

constexpr std::int64_t kSize = 40001;

const AdamW kOptions{.learning_rate = 0.01f,
                     .beta1 = 0.9f,
                     .beta2 = 0.95f,
                     .epsilon = 1e-8f,
                     .weight_decay = 0.1f,
                     .gradient_scale = 0.5f,
                     .step = 1};

float gradient(int step, std::int64_t i) {
  return static_cast<float>(base::normal(static_cast<std::uint64_t>(step), std::uint64_t(i)));
}

// State of a run of three steps.
struct Steps {
  explicit Steps(int threads, DeviceKind device = DeviceKind::Cpu) : bench(threads, device) {}

  void steps(const Tensor& weights, const AdamW& options) {
    for (std::int64_t i = 0; i < kSize; ++i) {
      w.host<float>()[i] = gradient(0, i);
      m.host<float>()[i] = v.host<float>()[i] = 0;
    }
    for (int step = 1; step <= 3; ++step) {
      for (std::int64_t i = 0; i < kSize; ++i) g.host<float>()[i] = gradient(step, i);
      AdamW now = options;
      now.step = step;
      adamw(*bench.stream, weights, w, m, v, g, now);
      bench.stream->synchronize();
    }
  }

  Tensor numbers(Tag tag) { return Tensor::host_visible(bench.pool, DType::F32, {kSize}, tag); }

  Workbench bench;
  Tensor w = numbers(Tag::Weights), m = numbers(Tag::Optimizer);
  Tensor v = numbers(Tag::Optimizer), g = numbers(Tag::Gradients);
};

class AdamWOn : public ::testing::TestWithParam<DeviceKind> {};

TEST_P(AdamWOn, ThreeStepsMatchDoublePrecision) {
  Steps run(2, GetParam());
  run.steps(run.w, kOptions);
  for (std::int64_t i = 0; i < kSize; i += 97) {
    double w = double(gradient(0, i)), m = 0, v = 0;
    for (int step = 1; step <= 3; ++step) {
      const double g = 0.5 * double(gradient(step, i)), b1 = double(0.9f), b2 = double(0.95f);
      m = b1 * m + (1 - b1) * g;
      v = b2 * v + (1 - b2) * g * g;
      const double mean = m / (1 - std::pow(b1, step)), square = v / (1 - std::pow(b2, step));
      w -= double(0.01f) * (mean / (std::sqrt(square) + double(1e-8f)) + double(0.1f) * w);
    }
    ASSERT_NEAR(double(run.w.host<float>()[i]), w, 1e-6);
    ASSERT_NEAR(double(run.m.host<float>()[i]), m, 1e-6);
    ASSERT_NEAR(double(run.v.host<float>()[i]), v, 1e-6);
  }
}

TEST_P(AdamWOn, LeavesTheGradientAsItIs) {
  Steps run(1, GetParam());
  run.steps(run.w, kOptions);
  for (std::int64_t i = 0; i < kSize; ++i) ASSERT_EQ(run.g.host<float>()[i], gradient(3, i));
}

TEST_P(AdamWOn, Bf16WeightsAreTheRoundedMaster) {
  Steps run(2, GetParam());
  const Tensor weights = Tensor::host_visible(run.bench.pool, DType::BF16, {kSize}, Tag::Weights);
  run.steps(weights, kOptions);
  for (std::int64_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(weights.host<BFloat16>()[i].bits, BFloat16(run.w.host<float>()[i]).bits);
  }
}

// Runs with any begin and end, adjacent, empty, and at the end.
TEST(AdamW, OnlyUndecayedRunsKeepTheirWeight) {
  const std::vector<ElementRun> runs{{2, 3}, {3, 9}, {500, 500}, {4095, 4099}, {30001, kSize}};
  AdamW options = kOptions, without = kOptions;
  options.undecayed = runs;
  without.weight_decay = 0;
  for (const DeviceKind device : devices::all_devices()) {
    Steps mixed(2, device), decayed(2, device), kept(2, device);
    mixed.steps(mixed.w, options);
    decayed.steps(decayed.w, kOptions);
    kept.steps(kept.w, without);
    for (std::int64_t i = 0; i < kSize; ++i) {
      const bool is_kept = std::ranges::any_of(runs, [&](const ElementRun& run) {
        return run.begin <= i && i < run.end;
      });
      ASSERT_EQ(mixed.w.host<float>()[i], (is_kept ? kept : decayed).w.host<float>()[i])
          << devices::name_of(device) << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         AdamWOn,
                         ::testing::ValuesIn(devices::all_devices()),
                         [](const auto& test) { return devices::name_of(test.param); });

TEST(AdamW, TheThreadCountChangesNoBit) {
  Steps one(1), three(3);
  one.steps(one.w, kOptions);
  three.steps(three.w, kOptions);
  for (std::int64_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(one.w.host<float>()[i], three.w.host<float>()[i]);
  }
}

}  // namespace adamw_test
}  // namespace weft::kernels
