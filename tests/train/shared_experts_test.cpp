// Shared experts in training: equal bits in any order, equal numbers under any layout.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::train {
namespace shared_experts_test {

config::Config with_shared(config::Config config, bool gate) {
  config.model.moe_shared_expert_intermediate_size = 20;
  config.model.moe_shared_expert_gate = gate;
  return config;
}

class SharedExperts : public ::testing::TestWithParam<bool> {};

TEST_P(SharedExperts, AnyOrderGivesTheBitsOfThePlainOne) {
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    config::Config plain =
        with_layout(with_shared(small_config(), GetParam()), {.world = 2, .ep = 2});
    plain.model.params_dtype = precision;
    const Outcome expected = train_some(plain, 4);
    config::Config overlapped = plain;
    overlapped.model.moe_shared_expert_overlap = true;
    expect_same_bits(expected, train_some(overlapped, 4));
    overlapped.model.overlap_dispatch_backward_with_experts_wgrad = true;
    expect_same_bits(expected, train_some(overlapped, 4));
    config::Config interleaved = plain;
    interleaved.comm_overlap.overlap_moe_expert_parallel_comm = true;
    expect_same_bits(expected, train_some(interleaved, 4));
    interleaved.comm_overlap.delay_wgrad_compute = true;
    expect_same_bits(expected, train_some(interleaved, 4));
  }
}

TEST_P(SharedExperts, RandomDelaysAndPipelinesGiveTheSameBits) {
  config::Config plain =
      with_layout(with_shared(deep_config(), GetParam()), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  const Outcome expected = train_some(plain, 3);
  config::Config overlapped = plain;
  overlapped.model.moe_shared_expert_overlap = true;
  overlapped.fabric.jitter_us = 300;
  expect_same_bits(expected, train_some(overlapped, 3));
  config::Config interleaved = plain;
  interleaved.comm_overlap.overlap_moe_expert_parallel_comm = true;
  interleaved.comm_overlap.delay_wgrad_compute = true;
  interleaved.fabric.jitter_us = 300;
  expect_same_bits(expected, train_some(interleaved, 3));
}

TEST_P(SharedExperts, UnderAnAllGatherTheBitsAreThoseOfThePlainOrder) {
  config::Config plain =
      with_layout(with_shared(small_config(), GetParam()), {.world = 2, .ep = 2});
  plain.model.moe_token_dispatcher_type = config::Dispatcher::AllGather;
  const Outcome expected = train_some(plain, 4);
  plain.model.moe_shared_expert_overlap = true;
  expect_same_bits(expected, train_some(plain, 4));
}

TEST_P(SharedExperts, TrainingEqualsTheOneRankRun) {
  const config::Config config = with_shared(small_config(), GetParam());
  const Outcome one = train_some(config, 4);
  for (const LayoutCase& layout :
       {LayoutCase{.world = 2, .ep = 2}, LayoutCase{.world = 4, .ep = 2}}) {
    config::Config laid_out = with_layout(config, layout);
    laid_out.model.moe_shared_expert_overlap = true;
    const Outcome many = train_some(laid_out, 4);
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
      EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
    }
    for (const auto& [name, values] : one.weights) {
      EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-3) << name;
    }
  }
}

TEST_P(SharedExperts, AreLearned) {
  const config::Config config =
      with_layout(with_shared(small_config(), GetParam()), {.world = 2, .ep = 2});
  const Outcome before = train_some(config, 0), after = train_some(config, 2);
  for (const char* name : {"layers.0.shared.fc1.weight", "layers.2.shared.fc2.weight"}) {
    EXPECT_GT(largest_difference(before.weights.at(name), after.weights.at(name)), 1e-3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Gate, SharedExperts, ::testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "Gated" : "Plain";
});

}  // namespace shared_experts_test
}  // namespace weft::train
