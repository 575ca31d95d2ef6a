#include "weft/rules/parallel/overlap_modes.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {
namespace overlap_modes_test {

std::vector<std::string> lines(const std::vector<std::string>& overrides) {
  std::vector<std::string> all;
  for (const OverlapMode& mode : overlap_modes(judge(words::with_words({}, overrides)))) {
    all.push_back(to_line(mode));
  }
  return all;
}

std::string line(const std::vector<std::string>& all, const std::string& name) {
  for (const std::string& one : all) {
    if (one.starts_with(name + ":")) return one;
  }
  return "no line for " + name;
}

const std::vector<std::string> kOverlap = {"model.num_moe_experts=4",
                                           "model.expert_model_parallel_size=2",
                                           "train.global_batch_size=16",
                                           "comm_overlap.overlap_moe_expert_parallel_comm=true"};
const std::vector<std::string> kSharded = {"ddp.use_distributed_optimizer=true",
                                           "optimizer.use_distributed_optimizer=true",
                                           "runtime.world_size=4",
                                           "train.global_batch_size=4"};

std::vector<std::string> with(std::vector<std::string> overrides, const std::string& more) {
  overrides.push_back(more);
  return overrides;
}

TEST(OverlapModes, EachModeHasALineAndTheDefaultsHaveNone) {
  const std::vector<std::string> all = lines({});
  EXPECT_EQ(all.size(), 12u);
  for (const std::string& one : all) EXPECT_NE(one.find(": off ("), std::string::npos) << one;
  EXPECT_EQ(line(all, "expert-parallel overlap"), "expert-parallel overlap: off (off by default)");
  EXPECT_EQ(line(all, "pipeline exchange"),
            "pipeline exchange: off (C12: with pp = 1 there are no neighbours)");
}

TEST(OverlapModes, AskedForCountsThePartners) {
  EXPECT_EQ(line(lines(kOverlap), "expert-parallel overlap"),
            "expert-parallel overlap: on (asked for; 7 of 8 micro-batches have a partner)");
  EXPECT_EQ(line(lines(with(kOverlap, "comm_overlap.delay_wgrad_compute=true")),
                 "delayed weight gradients"),
            "delayed weight gradients: on (asked for)");
}

TEST(OverlapModes, WhatIsLeftToTheRunIsNeitherOnNorOff) {
  std::vector<std::string> left = kOverlap;
  left.back() = "comm_overlap.overlap_moe_expert_parallel_comm=auto";
  for (const char* mode : {"expert-parallel overlap", "delayed weight gradients"}) {
    const std::string said = line(lines(left), mode);
    EXPECT_NE(said.find(": auto (decided in the run's first steps"), said.npos) << said;
  }
}

TEST(OverlapModes, ARuleThatDecidesIsNamedWithItsNumbers) {
  const std::string off =
      line(lines({"comm_overlap.tp_comm_overlap=true"}), "tensor-parallel overlap");
  EXPECT_TRUE(off.starts_with("tensor-parallel overlap: off (C5: ")) << off;
  EXPECT_NE(off.find("TP size < 2"), std::string::npos) << off;
  const std::string on = line(lines(kSharded), "gradient reduction");
  EXPECT_TRUE(on.starts_with("gradient reduction: on (C33: dp = 4 ranks")) << on;
  EXPECT_NE(on.find(" buckets over dp = 4"), std::string::npos) << on;
}

TEST(OverlapModes, AskedToBeOffIsNotTheDefault) {
  EXPECT_EQ(
      line(lines(with(kSharded, "comm_overlap.overlap_param_gather=false")), "parameter gather"),
      "parameter gather: off (asked to be off)");
}

TEST(OverlapModes, WhatFindsNothingToDoIsOff) {
  EXPECT_EQ(line(lines({"comm_overlap.overlap_p2p_comm=true"}), "pipeline exchange"),
            "pipeline exchange: off (asked for, but pp = 1 has no neighbours)");
  const std::string lost = line(lines({"comm_overlap.overlap_grad_reduce=true",
                                       "runtime.world_size=2",
                                       "train.global_batch_size=2"}),
                                "gradient reduction");
  EXPECT_TRUE(lost.starts_with("gradient reduction: off (C32: ")) << lost;
  EXPECT_EQ(line(lines({"model.overlap_dispatch_backward_with_experts_wgrad=true",
                        "model.num_moe_experts=4"}),
                 "dispatch backward under the experts' weight gradients"),
            "dispatch backward under the experts' weight gradients: off (asked for, but ep = 1 "
            "sends no tokens)");
}

TEST(OverlapModes, TokenSlicesSayHowManyTokensTheyCut) {
  const std::vector<std::string> sliced = {"model.num_moe_experts=4",
                                           "model.expert_model_parallel_size=2",
                                           "train.global_batch_size=2",
                                           "model.seq_length=64",
                                           "comm_overlap.moe_token_slices=4"};
  EXPECT_EQ(line(lines(sliced), "token slices"),
            "token slices: on (asked for; 4 slices of the 64 tokens of a micro-batch)");
  EXPECT_EQ(
      line(lines({"model.num_moe_experts=4", "comm_overlap.moe_token_slices=4"}), "token slices"),
      "token slices: off (asked for, but ep = 1 sends no tokens)");
  EXPECT_EQ(line(lines({}), "token slices"), "token slices: off (off by default)");
}

TEST(OverlapModes, SharedExpertsOverlapWhereTokensTravel) {
  const std::vector<std::string> shared = {"model.num_moe_experts=4",
                                           "model.moe_shared_expert_intermediate_size=32",
                                           "model.moe_shared_expert_overlap=true",
                                           "train.global_batch_size=2"};
  EXPECT_EQ(line(lines(shared), "shared-expert overlap"),
            "shared-expert overlap: off (asked for, but ep = 1 sends no tokens)");
  EXPECT_EQ(
      line(lines(with(shared, "model.expert_model_parallel_size=2")), "shared-expert overlap"),
      "shared-expert overlap: on (asked for; ep = 2)");
}

TEST(OverlapModes, ARefusedRunHasNone) {
  EXPECT_THROW(lines({"comm_overlap.delay_wgrad_compute=true"}), base::InternalError);
}

}  // namespace overlap_modes_test
}  // namespace weft::rules
