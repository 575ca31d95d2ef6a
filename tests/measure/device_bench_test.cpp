// Parts of `weft bench gpu` on every device of this machine, on shapes that take no time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>

#include "tests/devices/devices_support.h"
#include "weft/measure/device/device_attention.h"
#include "weft/measure/device/device_ceilings.h"
#include "weft/measure/device/device_kernels.h"
#include "weft/measure/device/device_products.h"
#include "weft/measure/device/device_step.h"
#include "weft/rules/validate.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {
namespace device_bench_test {

using tensor::DType;

const NoteOperation kQuiet = [](const std::string&) {};

class DeviceBench : public ::testing::TestWithParam<devices::DeviceKind> {
 protected:
  DeviceBench()
      : device_(devices::make_device(GetParam())),
        timer_(*device_, {.rounds = 2, .calls = 3, .lead_bytes = 1024}) {}

  static void expect_sane(const DeviceRate& rate) {
    EXPECT_GT(rate.work, 0) << rate.name;
    EXPECT_GT(rate.seconds, 0) << rate.name;
    EXPECT_LT(rate.seconds, 10) << rate.name;
    EXPECT_FALSE(rate.shape.empty()) << rate.name;
  }

  std::unique_ptr<tensor::Device> device_;
  DeviceTimer timer_;
};

TEST_P(DeviceBench, RandomNumbersAreNormalAndDifferentInEachTensor) {
  const auto a = tensor::read_floats(timer_.stream(), timer_.random(DType::BF16, {3, 1000}, 2));
  const auto b = tensor::read_floats(timer_.stream(), timer_.random(DType::F32, {3000}));
  double square = 0;
  for (const float value : a) square += value * value;
  EXPECT_NEAR(std::sqrt(square / 3000), 2, 0.2);
  EXPECT_NE(a[0] / 2, b[0]);
}

TEST_P(DeviceBench, ATimerToldToStopThrows) {
  const std::atomic<bool> stop = true;
  DeviceTimer timer(*device_, {.lead_bytes = 4, .stop = &stop});
  EXPECT_THROW(timer.seconds_of([] {}), Stopped);
}

TEST_P(DeviceBench, Ceilings) {
  const DeviceCeilings ceilings =
      bench_ceilings(timer_, {.product = 16, .copy_bytes = 4096, .link_bytes = 4096});
  for (const double rate : {ceilings.flops,
                            ceilings.copy,
                            ceilings.fill,
                            ceilings.upload,
                            ceilings.download,
                            ceilings.both}) {
    EXPECT_GT(rate, 0);
  }
}

TEST_P(DeviceBench, EveryClassOfKernelsHasALine) {
  const std::vector<DeviceRate> rates = bench_kernels(timer_,
                                                      {.tokens = 32,
                                                       .hidden = 16,
                                                       .experts = 8,
                                                       .topk = 2,
                                                       .expert_width = 8,
                                                       .vocabulary = 64,
                                                       .sequence = 16,
                                                       .heads = 2,
                                                       .head_width = 8,
                                                       .logit_rows = 32,
                                                       .parameters = 4096},
                                                      kQuiet);
  std::vector<std::string> names;
  for (const DeviceRate& rate : rates) {
    expect_sane(rate);
    names.push_back(rate.name);
  }
  for (const char* name : {"rms_norm_forward",
                           "head_norm_dgrad",
                           "rotary_forward",
                           "add",
                           "weighted_swiglu_dgrad",
                           "top_k_forward",
                           "permute",
                           "unpermute",
                           "embedding_wgrad",
                           "cross_entropy_dgrad",
                           "adamw"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
}

TEST_P(DeviceBench, ProductsInEveryDirection) {
  const ProductRates dense =
      bench_product(timer_,
                    DenseProduct{.name = "head", .rows = 8, .n = 12, .k = 4, .result = DType::F32},
                    kQuiet);
  for (const DeviceRate& rate : dense.all()) {
    expect_sane(rate);
    EXPECT_EQ(rate.work, product_flop(8, 12, 4)) << rate.name;
  }
  const ProductRates grouped = bench_product(
      timer_,
      GroupedProduct{.name = "FC1", .rows_name = "uneven", .rows = {3, 0, 5}, .n = 8, .k = 4},
      kQuiet);
  for (const DeviceRate& rate : grouped.all()) {
    expect_sane(rate);
    EXPECT_EQ(rate.work, product_flop(8, 8, 4)) << rate.name;
  }
}

TEST_P(DeviceBench, AttentionWithHeadsOfTwoWidths) {
  const AttentionCase latent{
      .name = "latent",
      .work =
          {.batch = 2, .sequence = 8, .heads = 4, .groups = 2, .head_width = 16, .value_width = 8}};
  const AttentionRates rates = bench_attention(timer_, latent, kQuiet);
  expect_sane(rates.forward);
  expect_sane(rates.backward);
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         DeviceBench,
                         ::testing::ValuesIn(devices::all_devices()),
                         [](const auto& each) { return devices::name_of(each.param); });

config::Config small_config() {
  config::Config config;
  config.model.num_layers = 2;
  config.model.hidden_size = 16;
  config.model.num_attention_heads = 2;
  config.model.seq_length = 8;
  config.model.vocab_size = 64;
  config.model.num_moe_experts = 4;
  config.model.moe_router_topk = 2;
  config.model.moe_ffn_hidden_size = 8;
  config.train.micro_batch_size = 3;
  config.train.global_batch_size = 3;
  return config;
}

TEST(DeviceStepBench, TimesTheMicroBatchAndOneSequence) {
  const DeviceStep step =
      bench_device_step({.config = rules::validate(small_config()).judged.value(), .rounds = 2});
  EXPECT_EQ(step.whole.sequences, 3);
  ASSERT_TRUE(step.single);
  EXPECT_EQ(step.single->sequences, 1);
  EXPECT_GT(step.whole.tokens_per_second, 0);
  EXPECT_GT(step.step_seconds, 0);
  EXPECT_GT(step.shares.products, 0);
  EXPECT_GT(step.shares.attention, 0);
  EXPECT_GT(step.issue_seconds_per_node, 0);
  EXPECT_FALSE(step.operations.empty());
  // Without training, the micro-batch's loss is the mean of its sequences'.
  ASSERT_EQ(step.losses.size(), 3u);
  EXPECT_NEAR(step.loss, (step.losses[0] + step.losses[1] + step.losses[2]) / 3, 1e-5);
}

TEST(DeviceStepBench, LeavesWeightsAndTokensForAPeer) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "weft_device_step";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  config::Config config = small_config();
  config.model.qk_layernorm = config::QkNorm::Head;
  bench_device_step(
      {.config = rules::validate(config).judged.value(), .rounds = 1, .leave_in = folder});
  EXPECT_TRUE(std::filesystem::exists(folder / "config.json"));
  EXPECT_EQ(std::filesystem::file_size(folder / "tokens.i32"), 3u * 9 * 4);
  std::filesystem::remove_all(folder);
}

}  // namespace device_bench_test
}  // namespace weft::measure
