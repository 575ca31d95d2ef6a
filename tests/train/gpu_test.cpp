// The whole engine on a GPU. Sums have another order than on the CPU, so values are close to the
// CPU's, not equal. Bits on the GPU are equal, with any overlap.
#include <gtest/gtest.h>

#include "tests/train/engine_cases_support.h"

namespace weft::train {
namespace gpu_test {

using config::Config;
using devices::DeviceKind;

// Without a GPU, a single test is listed and skipped.
std::vector<EngineCase> gpu_cases() {
  if (devices::why_no_gpu().empty()) return engine_cases();
  return {{"NoGpu", small_config()}};
}

class GpuEngine : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (!devices::why_no_gpu().empty()) GTEST_SKIP() << devices::why_no_gpu();
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, GpuEngine, testing::ValuesIn(gpu_cases()), [](const auto& test) {
  return test.param.name;
});

Outcome trained(const EngineCase& at, const Config& config) {
  return train_some(config, 2, at.detail, DeviceKind::Cuda);
}

TEST_P(GpuEngine, TrainsToTheSameBitsTwice) {
  expect_same_bits(trained(GetParam(), GetParam().config), trained(GetParam(), GetParam().config));
}

// Random delays of ranks change the overlap, and no bit.
TEST_P(GpuEngine, DelaysChangeNoBit) {
  Config late = GetParam().config;
  late.fabric.jitter_us = 300;
  expect_same_bits(trained(GetParam(), late), trained(GetParam(), GetParam().config));
}

TEST_P(GpuEngine, StaysCloseToTheCpu) {
  const auto& [name, config, detail] = GetParam();
  const Outcome gpu = trained(GetParam(), config), cpu = train_some(config, 2, detail);
  const bool half = config.model.params_dtype == base::DType::BF16;
  const double tolerance = half ? 5e-3 : 1e-5;
  ASSERT_EQ(gpu.losses.size(), cpu.losses.size());
  for (std::size_t i = 0; i < cpu.losses.size(); ++i) {
    EXPECT_NEAR(gpu.losses[i], cpu.losses[i], tolerance * cpu.losses[i]) << "step " << i;
    EXPECT_NEAR(gpu.gradient_norms[i],
                cpu.gradient_norms[i],
                10 * tolerance * cpu.gradient_norms[i])
        << "step " << i;
  }
}

}  // namespace gpu_test
}  // namespace weft::train
