// Tokens that tensor-parallel ranks exchange in steps, under their products: bits of the plain
// collectives.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::train {
namespace tensor_overlap_test {

config::Config with_shared(config::Config config) {
  config.model.moe_shared_expert_intermediate_size = 20;
  return config;
}

config::Config with_gate(config::Config config) {
  config = with_shared(std::move(config));
  config.model.moe_shared_expert_gate = true;
  return config;
}

config::Config with_groups(config::Config config, std::int64_t groups) {
  config.model.num_query_groups = groups;
  return config;
}

config::Config normed_over_heads(config::Config config) {
  config.model.qk_layernorm = config::QkNorm::Projection;
  return config;
}

config::Config in_bf16(config::Config config) {
  config.model.params_dtype = base::DType::BF16;
  return config;
}

config::Config sharing_sequences(config::Config config, int cp) {
  config.model.num_query_groups = std::nullopt;
  config.model.context_parallel_size = cp;
  config.model.cp_comm_type = {config::CpComm::P2p, config::CpComm::AllGather, config::CpComm::P2p};
  return config;
}

struct Case {
  std::string name;
  config::Config config;
  LayoutCase layout;
};

void PrintTo(const Case& at, std::ostream* out) { *out << at.name; }

class TensorOverlap : public ::testing::TestWithParam<Case> {};

TEST_P(TensorOverlap, ChangesNoBit) {
  config::Config config = with_layout(GetParam().config, GetParam().layout);
  const Outcome plain = train_some(config, 3);
  config.comm_overlap.tp_comm_overlap = true;
  expect_same_bits(plain, train_some(config, 3));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    TensorOverlap,
    ::testing::ValuesIn(third_or_all<Case>(
        {Case{"Tp2", small_config(), {.world = 2, .tp = 2}},
         Case{"Tp4SharesKeyHeads", small_config(), {.world = 4, .tp = 4}},
         Case{"Tp4InBf16", in_bf16(with_gate(small_config())), {.world = 4, .tp = 4}},
         Case{"Tp4OfOneKeyHead", with_groups(small_config(), 1), {.world = 4, .tp = 4}},
         Case{"Tp2OfOneNorm", normed_over_heads(small_config()), {.world = 2, .tp = 2}},
         Case{"LatentTp2", latent_config(), {.world = 2, .tp = 2}},
         Case{"LatentTp4InBf16", in_bf16(latent_config()), {.world = 4, .tp = 4}},
         Case{"SharedTp2Ep2", with_shared(small_config()), {.world = 2, .ep = 2, .tp = 2}},
         Case{"SharedTp4Ep4Dp2", with_gate(small_config()), {.world = 8, .ep = 4, .tp = 4}},
         Case{"Tp2Cp2", sharing_sequences(with_shared(small_config()), 2), {.world = 4, .tp = 2}},
         Case{"LatentTp2Cp2", sharing_sequences(latent_config(), 2), {.world = 4, .tp = 2}},
         Case{"Tp2Ep2Pp2Vpp2",
              with_gate(deep_config()),
              {.world = 4, .ep = 2, .tp = 2, .pp = 2, .vpp = 2}},
         Case{"Tp2Pp2ZeroBubble",
              with_shared(deep_config()),
              {.world = 4, .tp = 2, .pp = 2, .schedule = config::PipelineSchedule::ZeroBubble}},
         Case{"Tp4Pp2DualPipeV",
              deep_config(),
              {.world = 8,
               .tp = 4,
               .pp = 2,
               .vpp = 2,
               .schedule = config::PipelineSchedule::DualPipeV}}})),
    [](const auto& param_info) { return param_info.param.name; });

// Combined with other features that change the order.
TEST(TensorOverlapBeside, OtherOverlapChangesNoBit) {
  config::Config config = with_layout(with_gate(deep_config()), {.world = 4, .ep = 2, .tp = 2});
  config.train.global_batch_size = 6;  // three micro-batches per rank
  const Outcome plain = train_some(config, 2);
  config.comm_overlap.tp_comm_overlap = true;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  expect_same_bits(plain, train_some(config, 2));
  config.comm_overlap.delay_wgrad_compute = true;
  config.fabric.jitter_us = 300;
  config.fabric.seed = 3;
  expect_same_bits(plain, train_some(config, 2));
  config.comm_overlap.overlap_moe_expert_parallel_comm = false;
  config.comm_overlap.delay_wgrad_compute = false;
  config.model.moe_shared_expert_overlap = true;
  config.model.overlap_dispatch_backward_with_experts_wgrad = true;
  expect_same_bits(plain, train_some(config, 2));
}

// Recomputed products run unsplit.
TEST(TensorOverlapBeside, RecomputationChangesNoBit) {
  using schedule::Part;
  using schedule::Piece;
  config::Config config = with_layout(small_config(), {.world = 2, .tp = 2});
  const Outcome plain = train_some(config, 2);
  config.comm_overlap.tp_comm_overlap = true;
  for (const schedule::Detail& detail :
       {schedule::Detail{{}, {{Piece::Attention, Part::Core}, {Piece::Mlp, Part::Act}}},
        schedule::Detail{{}, {{Piece::Attention, Part::Norm}, {Piece::Attention, Part::Qkv}}},
        schedule::Detail{{}, {{Piece::Mlp, Part::Norm}, {Piece::Mlp, Part::Fc1}}}}) {
    expect_same_bits(plain, train_some(config, 2, detail));
  }
}

}  // namespace tensor_overlap_test
}  // namespace weft::train
