// Memory savings change no bit, and a step's memory is predicted exactly, for random combinations
// of savings, layouts and orders.
#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/train/random_savings_support.h"

namespace weft::train {
namespace savings_test {

constexpr unsigned kSeed = 20261117;
constexpr devices::DeviceKind kCpu = devices::DeviceKind::Cpu;

TEST(Savings, ChangeNoBitAndTakeWhatIsPredicted) {
  if (kSanitized) GTEST_SKIP() << "skipped: too long under a sanitizer";
  const unsigned seed = savings_seed(kSeed);
  Draw draw(seed);
  for (int i = 0; i < savings_wanted(); ++i)
    expect_saved(draw_run_that_saves(draw, few_or_many(8, 16)), kCpu);
  std::printf("seed %u: %d runs\n", seed, savings_wanted());
}

// Each module's saving, on one rank: the forward of a micro-batch keeps less than before.
TEST(Savings, EachModuleKeepsLess) {
  for (const std::string module :
       {"core_attn", "layernorm", "moe_act", "mlp", "moe", "mla_up_proj"}) {
    SCOPED_TRACE(module);
    config::Config config = with_few_micro_batches(savings_config("latent"));
    const Peaks before = even_peaks(config, kCpu).at(0);
    config = with_words(config,
                        {{"model.recompute_granularity", "selective"},
                         {"model.recompute_modules", "[" + module + "]"}});
    EXPECT_LT(even_peaks(config, kCpu).at(0).total, before.total);
  }
}

std::size_t offloaded(const Peaks& peaks) {
  return peaks.tags[static_cast<std::size_t>(tensor::Tag::Offloaded)];
}

TEST(Savings, EachOffloadedModuleTakesHostMemoryInsteadOfTheDevices) {
  for (const std::string attention : {"", "latent", "whole queries"}) {
    const config::Config plain = with_few_micro_batches(savings_config(attention));
    const Peaks before = even_peaks(plain, kCpu).at(0);
    EXPECT_EQ(offloaded(before), 0u);
    for (const std::string modules : {"core_attn",
                                      "core_attn,attn_proj",
                                      "attn_norm",
                                      "mlp_norm",
                                      "qkv_linear",
                                      "expert_fc1",
                                      "moe_act"}) {
      SCOPED_TRACE(attention + " " + modules);
      const config::Config config =
          with_words(plain,
                     {{"model.fine_grained_activation_offloading", "true"},
                      {"model.offload_modules", "[" + modules + "]"}});
      const std::map<int, Peaks> peaks = even_peaks(config, kCpu);
      EXPECT_LT(peaks.at(0).total, before.total);
      EXPECT_GT(offloaded(peaks.at(0)), 0u);
      expect_predicted(config, peaks, kCpu);
    }
  }
}

config::Config zero_bubble(const LayoutCase& layout) {
  config::Config config = with_layout(deep_config(), layout);
  config.runtime.pipeline_schedule = config::PipelineSchedule::ZeroBubble;
  config.train.global_batch_size = 8 * config.train.micro_batch_size;
  return config;
}

// In this order it returns during the forward.
TEST(Savings, AnOffloadedNormReturnsWhenWhatWasGatheredOfItHasBeenRead) {
  const config::Config plain = zero_bubble({.world = 8, .tp = 2, .pp = 4});
  const config::Config config = with_words(plain,
                                           {{"model.fine_grained_activation_offloading", "true"},
                                            {"model.offload_modules", "[qkv_linear]"}});
  expect_same_bits(train_some(plain, 2), train_some(config, 2));
}

// Received tokens and tokens computed here share a buffer, which two streams write.
TEST(Savings, RecomputedNormsChangeNoBitWhereRanksExchangeInSteps) {
  const config::Config plain = with_words(
      zero_bubble({.world = 4, .tp = 2, .pp = 2}),
      {{"model.recompute_granularity", "selective"}, {"model.recompute_modules", "[layernorm]"}});
  const Outcome expected = train_some(plain, 3);
  const config::Config config = with_words(plain, {{"comm_overlap.tp_comm_overlap", "true"}});
  for (int i = 0; i < 2; ++i) expect_same_bits(expected, train_some(config, 3));
}

}  // namespace savings_test
}  // namespace weft::train
