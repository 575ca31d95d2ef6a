// Experts shared by several ranks: every dispatcher trains as one rank does.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"
#include "weft/base/text.h"

namespace weft::train {
namespace expert_tensor_test {

using config::Dispatcher;
using config::FlexBackend;

struct Sending {
  const char* name;
  Dispatcher type = Dispatcher::AllToAll;
  std::optional<FlexBackend> backend = {};
  std::int64_t per_machine = 0;
};

constexpr Sending kSendings[] = {
    {"AllToAll"},
    {"AllGather", Dispatcher::AllGather},
    {"DeepEp", Dispatcher::Flex, FlexBackend::DeepEp},
    {"HybridEp", Dispatcher::Flex, FlexBackend::HybridEp, 2},
};

config::Config with_sending(config::Config config, const Sending& sending) {
  config.model.moe_token_dispatcher_type = sending.type;
  config.model.moe_flex_dispatcher_backend = sending.backend;
  if (sending.per_machine > 0) config.runtime.ranks_per_node = sending.per_machine;
  return config;
}

// Tokens for at most eight ranks, and further router options.
config::Config model_of(config::Config config) {
  config.train.global_batch_size = 16;
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::AuxLoss,
                                                 config::LoadBalancing::SeqAuxLoss};
  config.model.moe_aux_loss_coeff = {0.02, 0.01};
  config.model.moe_z_loss_coeff = 0.001;
  config.model.moe_router_topk = 3;
  config.model.moe_router_enable_expert_bias = true;
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.init_method_std = 0.5;  // logits far apart: few near ties
  // Gradients of rounding size have no effect; with 1e-8 they would move weights as much as others.
  config.optimizer.adam_eps = 1e-4;
  config.optimizer.lr = 1e-3;  // at ten times this rate, rounding errors grow tenfold per step
  return config;
}

void expect_as_one_rank(const Outcome& many, const Outcome& one) {
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
  }
  for (const auto& [name, values] : one.weights) {
    EXPECT_LT(largest_difference(many.weights.at(name), values), 1e-5) << name;
  }
}

class CutExperts : public ::testing::TestWithParam<LayoutCase> {};

INSTANTIATE_TEST_SUITE_P(Ranks,
                         CutExperts,
                         ::testing::Values(LayoutCase{.world = 4, .ep = 2, .etp = 2},
                                           LayoutCase{.world = 2, .etp = 2},
                                           LayoutCase{.world = 8, .ep = 2, .etp = 2},
                                           LayoutCase{.world = 2, .tp = 2, .etp = 2},
                                           LayoutCase{.world = 8, .ep = 2, .tp = 4, .etp = 2},
                                           LayoutCase{.world = 8, .ep = 2, .pp = 2, .etp = 2}),
                         [](const auto& param_info) { return name_of(param_info.param); });

TEST_P(CutExperts, TrainAsOnOneRank) {
  config::Config alone = model_of(GetParam().pp > 1 ? deep_config() : small_config());
  alone.train.global_batch_size =
      with_few_micro_batches(with_layout(alone, GetParam())).train.global_batch_size;
  const Outcome& one = trained_once(alone, 4);
  for (const Sending& sending : kSendings) {
    SCOPED_TRACE(sending.name);
    const config::Config config = with_sending(with_layout(alone, GetParam()), sending);
    const Outcome many = train_some(config, 4);
    EXPECT_EQ(one.weights.size(), many.weights.size());
    expect_as_one_rank(many, one);
  }
}

TEST(CutExpertsTraining, InitialWeightsAreThoseOfOneRank) {
  const Outcome one = train_some(small_config(), 0);
  const LayoutCase layout{.world = 4, .ep = 2, .etp = 2};
  EXPECT_EQ(one.weights, train_some(with_layout(small_config(), layout), 0).weights);
}

// Dropped, padded, with a budget, in slices: bits of the plain order, with any overlap.
TEST(CutExpertsTraining, HaveTheSameBitsInEveryOrder) {
  const LayoutCase layout{.world = 4, .ep = 2, .etp = 2};
  for (const Sending& sending : kSendings) {
    for (const int slices : {1, 3}) {
      SCOPED_TRACE(base::text("{}, {} slices", sending.name, slices));
      config::Config plain = with_sending(with_layout(model_of(small_config()), layout), sending);
      plain.comm_overlap.moe_token_slices = slices;
      if (sending.per_machine > 0) plain.model.moe_expert_rank_capacity_factor = 3;
      const Outcome expected = train_some(plain, 3);
      config::Config config = plain;
      config.comm_overlap.overlap_moe_expert_parallel_comm = true;
      config.comm_overlap.delay_wgrad_compute = true;
      config.fabric.jitter_us = 200;
      expect_same_bits(expected, train_some(config, 3));
    }
  }
}

TEST(CutExpertsTraining, DropAndPadToTheLossOfDroppingAlone) {
  const LayoutCase layout{.world = 4, .ep = 2, .etp = 2};
  for (const Sending& sending : kSendings) {
    if (sending.backend == FlexBackend::DeepEp) continue;  // does not pad, and is refused
    SCOPED_TRACE(sending.name);
    config::Config config = with_sending(with_layout(model_of(small_config()), layout), sending);
    config.model.moe_expert_capacity_factor = 1;
    const Outcome dropped = train_some(config, 3);
    config.model.moe_pad_expert_input_to_capacity = true;
    const Outcome padded = train_some(config, 3);
    for (std::size_t i = 0; i < dropped.losses.size(); ++i) {
      EXPECT_NEAR(padded.losses[i], dropped.losses[i], 1e-6 * dropped.losses[i]);
      EXPECT_NEAR(padded.gradient_norms[i], dropped.gradient_norms[i], 1e-5);
    }
  }
}

}  // namespace expert_tensor_test
}  // namespace weft::train
