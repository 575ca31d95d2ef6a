// The rules between pipelines, overlap and the batch.
#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/derive/pipeline.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace overlap_test {

std::vector<std::string> with_experts(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(),
                   {"model.num_layers=8",
                    "model.num_moe_experts=4",
                    "model.expert_model_parallel_size=2",
                    "train.global_batch_size=16"});
  return overrides;
}

std::vector<std::string> complaints(const std::vector<std::string>& overrides) {
  return complaints_of([&] { validate(words::with_words({}, with_experts(overrides))); });
}

const std::string kPp2 = "model.pipeline_model_parallel_size=2";
const std::string kPp4 = "model.pipeline_model_parallel_size=4";
const std::string kVpp1 = "model.virtual_pipeline_model_parallel_size=1";
const std::string kVpp2 = "model.virtual_pipeline_model_parallel_size=2";
const std::string kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm=true";

TEST(OverlapRules, PipelinesAndTheirOverlapAreLegal) {
  EXPECT_EQ(complaints({}), std::vector<std::string>{});
  EXPECT_EQ(complaints({kPp4, kVpp2}), std::vector<std::string>{});
  EXPECT_EQ(complaints({kPp2, kVpp1, kOverlap, "comm_overlap.delay_wgrad_compute=true"}),
            std::vector<std::string>{});
  EXPECT_EQ(complaints({kOverlap, "model.ep_overlap_early_attn_memory_release=true"}),
            std::vector<std::string>{});
}

TEST(OverlapRules, VirtualStagesNeedAPipeline) {
  EXPECT_TRUE(
      any_names(complaints({kVpp2}),
                {"virtual_pipeline_model_parallel_size = 2", "pipeline_model_parallel_size = 1"}));
}

TEST(OverlapRules, LayersAreSharedByTheStages) {
  EXPECT_TRUE(any_names(complaints({"model.pipeline_model_parallel_size=3"}),
                        {"num_layers = 8", "3 equal stages", "3*1"}));
  EXPECT_TRUE(any_names(complaints({kPp2, "model.pipeline_model_parallel_layout=Et|L"}),
                        {"1 layers (t)", "num_layers = 8"}));
}

TEST(OverlapRules, VirtualPipelinesTakeGroupsOfMicroBatches) {
  EXPECT_TRUE(any_names(complaints({kPp4, kVpp2, "train.global_batch_size=4"}),
                        {"at least pp = 4", "a step has 2", "train.global_batch_size=8 or more"}));
  EXPECT_TRUE(any_names(complaints({kPp2, kVpp2, "model.microbatch_group_size_per_vp_stage=1"}),
                        {"microbatch_group_size_per_vp_stage = 1", "use a number from 2 to 8"}));
  EXPECT_TRUE(any_names(complaints({kPp2, kVpp2, "model.microbatch_group_size_per_vp_stage=9"}),
                        {"a step has 8"}));
  EXPECT_TRUE(any_names(complaints({kPp2,
                                    kVpp2,
                                    "train.global_batch_size=14",
                                    "model.microbatch_group_size_per_vp_stage=3"}),
                        {"7 micro-batches", "last group of 1", "fewer than pp = 2"}));
  EXPECT_EQ(complaints({kPp2, kVpp2, "model.microbatch_group_size_per_vp_stage=3"}),
            std::vector<std::string>{});  // 3 + 3 + 2
}

TEST(OverlapRules, HidesOnlyWhatThereIs) {
  EXPECT_TRUE(any_names(complaints({kOverlap, "model.expert_model_parallel_size=1"}),
                        {"expert_model_parallel_size = 1", "has none"}));
  EXPECT_TRUE(any_names(complaints({kPp2, kOverlap}),
                        {"pipeline_model_parallel_size = 2",
                         "needs model.virtual_pipeline_model_parallel_size set"}));
  EXPECT_TRUE(any_names(complaints({"comm_overlap.delay_wgrad_compute=true"}),
                        {"delay_wgrad_compute", "overlap_moe_expert_parallel_comm=true"}));
  EXPECT_TRUE(any_names(complaints({"model.ep_overlap_early_attn_memory_release=true"}),
                        {"ep_overlap_early_attn_memory_release", "overlapped order"}));
  EXPECT_TRUE(
      any_names(complaints({kOverlap, "model.overlap_dispatch_backward_with_experts_wgrad=true"}),
                {"overlap_dispatch_backward_with_experts_wgrad", "exclude each other"}));
}

TEST(OverlapRules, PointToPointIsOverlappedOrBatched) {
  EXPECT_TRUE(any_names(
      complaints({"comm_overlap.overlap_p2p_comm=true", "comm_overlap.batch_p2p_comm=true"}),
      {"overlap_p2p_comm", "batch_p2p_comm", "exclude each other"}));
  const auto overlaps = [](std::vector<std::string> overrides) {
    return derive::overlaps_p2p(words::with_words({}, with_experts(std::move(overrides))));
  };
  EXPECT_FALSE(overlaps({kPp2}));
  EXPECT_TRUE(overlaps({kPp2, kVpp2}));
  EXPECT_FALSE(overlaps({kPp2, kVpp2, "comm_overlap.overlap_p2p_comm=false"}));
  EXPECT_TRUE(overlaps({kPp2, "comm_overlap.overlap_p2p_comm=true"}));
}

TEST(OverlapRules, OneMicroBatchIsAWarning) {
  const auto warnings = [](std::vector<std::string> overrides) {
    std::vector<std::string> texts;
    for (const Finding& warning :
         judge(words::with_words({}, with_experts(std::move(overrides)))).warnings) {
      texts.push_back(to_text(warning));
    }
    return texts;
  };
  EXPECT_TRUE(any_names(warnings({kOverlap, "train.global_batch_size=2"}),
                        {"one micro-batch", "raise train.global_batch_size"}));
  EXPECT_FALSE(any_names(warnings({kOverlap}), {"one micro-batch"}));
  EXPECT_FALSE(any_names(warnings({"train.global_batch_size=2"}), {"one micro-batch"}));
}

}  // namespace overlap_test
}  // namespace weft::rules
