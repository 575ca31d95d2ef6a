// Cases that Megatron settles, and similar ones: the resulting config, or the refusal.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace overlap_cases_test {

const std::string kGpt =
    "model.hidden_size=768 model.num_attention_heads=12 model.num_layers=12 "
    "train.global_batch_size=64 ";
const std::string kMoe =
    kGpt +
    "model.expert_model_parallel_size=2 model.num_moe_experts=2 model.bf16=true "
    "hardware.gpu=h100 ";
const std::string kOverlap = kMoe + "comm_overlap.overlap_moe_expert_parallel_comm=true ";
const std::string kDelay = kOverlap + "comm_overlap.delay_wgrad_compute=true ";
const std::string kSharded =
    kGpt + "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true ";
const std::string kInstances = "ddp.num_distributed_optimizer_instances=";
const std::string kVirtualPipeline =
    "model.pipeline_model_parallel_size=4 model.virtual_pipeline_model_parallel_size=2 ";
const std::string kTeGraphs =
    "model.cuda_graph_impl=transformer_engine model.use_te_rng_tracker=true ";

// Refused by `error`, with `said` in its message, or legal with `values`. `said` is in an expected
// warning.
struct Case {
  const char* name;
  std::string overrides;
  std::map<std::string, std::string> values = {};  // key to JSON
  std::string error = "";
  std::string said = "";
};

// Prints the case in a failure.
void PrintTo(const Case& one, std::ostream* out) { *out << one.name << ": " << one.overrides; }

Verdict judge_words(const std::string& words) {
  std::vector<std::string> overrides;
  for (const std::string& word : base::split(words, ' ')) {
    if (!word.empty()) overrides.push_back(word);
  }
  return judge(words::with_words({}, overrides));
}

bool says(const std::vector<Finding>& findings, const std::string& part) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return finding.message.find(part) != std::string::npos;
  });
}

class OverlapCase : public testing::TestWithParam<Case> {};

TEST_P(OverlapCase, IsSettledAsTheReferenceDoes) {
  const Case& one = GetParam();
  const Verdict verdict = judge_words(one.overrides);
  if (!one.error.empty()) {
    std::set<std::string> ids;
    for (const Finding& error : verdict.errors) ids.insert(error.id);
    EXPECT_TRUE(ids.contains(one.error));
    EXPECT_TRUE(says(verdict.errors, one.said)) << one.said;
    return;
  }
  for (const Finding& error : verdict.errors) ADD_FAILURE() << to_text(error);
  for (const auto& [key, value] : one.values) {
    EXPECT_EQ(find_field(key)->get(verdict.config).dump(), value) << key;
  }
  EXPECT_TRUE(one.said.empty() || says(verdict.warnings, one.said)) << one.said;
}

const Case kTensorCases[] = {
    {.name = "CO_02",
     .overrides = kGpt,
     .values = {{"comm_overlap.tp_comm_overlap", "false"},
                {"comm_overlap.overlap_p2p_comm", "false"},
                {"comm_overlap.batch_p2p_comm", "false"}}},
    {.name = "CO_04",
     .overrides = kGpt + "comm_overlap.tp_comm_overlap=true",
     .values = {{"comm_overlap.tp_comm_overlap", "false"}},
     .said = "TP size < 2"},
    {.name = "CO_05",
     .overrides = kGpt + "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=4 "
                         "model.num_attention_heads=16",
     .values = {{"comm_overlap.tp_comm_overlap", "false"}},
     .said = "sequence_parallel=False"},
    {.name = "SequenceParallelOfOneRankIsTpSize",
     .overrides = kGpt + "comm_overlap.tp_comm_overlap=true model.sequence_parallel=true",
     .values = {{"comm_overlap.tp_comm_overlap", "false"}},
     .said = "TP size < 2"},
    {.name = "TensorOverlapStays",
     .overrides = kGpt + "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=4 "
                         "model.sequence_parallel=true",
     .values = {{"comm_overlap.tp_comm_overlap", "true"}},
     .said = "without a preset"},
    {.name = "PresetNearlyNamed",
     .overrides = kGpt + "comm_overlap.tp_comm_overlap_cfg="
                         "userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen819",
     .error = "C9",
     .said = "none of the 19 presets"},
};
INSTANTIATE_TEST_SUITE_P(Tensor, OverlapCase, testing::ValuesIn(kTensorCases), [](const auto& one) {
  return std::string(one.param.name);
});

const Case kPipelineCases[] = {
    {.name = "CO_06",
     .overrides = kGpt + "model.num_layers=16 " + kVirtualPipeline,
     .values = {{"comm_overlap.overlap_p2p_comm", "true"},
                {"comm_overlap.batch_p2p_comm", "false"}}},
    {.name = "CO_07",
     .overrides = kGpt + "model.pipeline_model_parallel_size=4 "
                         "model.virtual_pipeline_model_parallel_size=1",
     .values = {{"comm_overlap.overlap_p2p_comm", "false"},
                {"comm_overlap.batch_p2p_comm", "true"}}},
    {.name = "CO_12",
     .overrides = kSharded + "runtime.world_size=4 comm_overlap.bucket_size=2048 "
                             "comm_overlap.overlap_p2p_comm=true",
     .values = {{"comm_overlap.bucket_size", "2048"},
                {"ddp.bucket_size", "2048"},
                {"comm_overlap.overlap_p2p_comm", "true"},
                {"comm_overlap.batch_p2p_comm", "false"}}},
    {.name = "CO_16",
     .overrides = kGpt + "model.num_layers=16 " + kVirtualPipeline +
                  "comm_overlap.overlap_p2p_comm=false comm_overlap.batch_p2p_comm=false",
     .values = {{"comm_overlap.overlap_p2p_comm", "false"},
                {"comm_overlap.batch_p2p_comm", "false"}}},
};
INSTANTIATE_TEST_SUITE_P(Pipeline,
                         OverlapCase,
                         testing::ValuesIn(kPipelineCases),
                         [](const auto& one) { return std::string(one.param.name); });

const Case kDataCases[] = {
    {.name = "CO_08",
     .overrides = kSharded + "runtime.world_size=4",
     .values = {{"comm_overlap.bucket_size", "134217728"},
                {"ddp.bucket_size", "134217728"},
                {"comm_overlap.overlap_grad_reduce", "true"},
                {"ddp.overlap_grad_reduce", "true"},
                {"comm_overlap.overlap_param_gather", "true"},
                {"ddp.overlap_param_gather", "true"},
                {"optimizer.overlap_param_gather", "true"},
                {"comm_overlap.overlap_param_gather_with_optimizer_step", "false"},
                {"comm_overlap.align_param_gather", "false"},
                {"ddp.align_param_gather", "false"}}},
    {.name = "CO_09",
     .overrides = kSharded,
     .values = {{"ddp.bucket_size", "null"},
                {"comm_overlap.overlap_grad_reduce", "false"},
                {"ddp.overlap_grad_reduce", "false"},
                {"comm_overlap.overlap_param_gather", "false"},
                {"ddp.overlap_param_gather", "false"}}},
    {.name = "CO_10",
     .overrides = kSharded + "model.num_layers=16 runtime.world_size=16 " + kVirtualPipeline,
     .values = {{"comm_overlap.align_param_gather", "true"}, {"ddp.align_param_gather", "true"}}},
    {.name = "UserUnaligns",
     .overrides = kSharded + "model.num_layers=16 runtime.world_size=16 " + kVirtualPipeline +
                  "comm_overlap.align_param_gather=false",
     .values = {{"comm_overlap.align_param_gather", "false"}, {"ddp.align_param_gather", "false"}}},
    {.name = "PlainPipelineIsNotAligned",
     .overrides = kSharded + "runtime.world_size=16 model.pipeline_model_parallel_size=4",
     .values = {{"comm_overlap.align_param_gather", "false"}}},
    {.name = "NothingIsSetWithoutADistributedOptimizer",
     .overrides = kGpt + "runtime.world_size=4",
     .values = {{"comm_overlap.overlap_grad_reduce", "null"},
                {"ddp.overlap_grad_reduce", "false"},
                {"ddp.bucket_size", "null"}}},
    {.name = "LostWithoutADistributedOptimizer",
     .overrides = kGpt + "runtime.world_size=4 comm_overlap.overlap_grad_reduce=true",
     .values = {{"ddp.overlap_grad_reduce", "false"}},
     .said = "comm_overlap.overlap_grad_reduce has no effect without a distributed optimizer"},
    {.name = "EX_04",
     .overrides = kSharded + "ddp.overlap_grad_reduce=true ddp.overlap_param_gather=true "
                             "optimizer.overlap_param_gather=true ddp.bucket_size=123",
     .values = {{"ddp.overlap_grad_reduce", "false"},
                {"ddp.overlap_param_gather", "false"},
                {"optimizer.overlap_param_gather", "false"},
                {"ddp.bucket_size", "null"}}},
    {.name = "EX_11",
     .overrides = kSharded + "runtime.world_size=4 comm_overlap.overlap_grad_reduce=false",
     .values = {{"ddp.overlap_grad_reduce", "false"}, {"ddp.overlap_param_gather", "true"}}},
    {.name = "UserGathersByHimself",
     .overrides = kSharded + "runtime.world_size=4 comm_overlap.overlap_param_gather=false",
     .values = {{"ddp.overlap_grad_reduce", "true"},
                {"ddp.overlap_param_gather", "false"},
                {"optimizer.overlap_param_gather", "false"}}},
    {.name = "BucketsOfDdpAreKept",
     .overrides = kSharded + "runtime.world_size=4 ddp.bucket_size=4096",
     .values = {{"comm_overlap.bucket_size", "4096"}, {"ddp.bucket_size", "4096"}}},
    {.name = "BucketsAreCountedOrMeasured",
     .overrides = kSharded + "runtime.world_size=4 ddp.num_buckets=4 comm_overlap.bucket_size=9",
     .error = "W51",
     .said = "ddp.num_buckets = 4"},
    {.name = "CountedBucketsHaveNoSize",
     .overrides = kSharded + "runtime.world_size=4 ddp.num_buckets=4",
     .values = {{"ddp.bucket_size", "null"}, {"comm_overlap.bucket_size", "null"}}},
};
INSTANTIATE_TEST_SUITE_P(Data, OverlapCase, testing::ValuesIn(kDataCases), [](const auto& one) {
  return std::string(one.param.name);
});

std::string spelled_twice(const char* name, const char* ddp, const char* optimizer) {
  return kGpt + base::text("ddp.{0}={1} optimizer.{0}={2}", name, ddp, optimizer);
}

std::map<std::string, std::string> both(const std::string& name, const char* value) {
  return {{"ddp." + name, value}, {"optimizer." + name, value}};
}

const char* const kShards = "use_distributed_optimizer";
const char* const kGathers = "overlap_param_gather";
const Case kSpelledTwiceCases[] = {
    {.name = "VC_12_shards_TF",
     .overrides = spelled_twice(kShards, "true", "false"),
     .values = both(kShards, "true"),
     .said = "both are on now"},
    {.name = "VC_12_shards_FT",
     .overrides = spelled_twice(kShards, "false", "true"),
     .values = both(kShards, "true"),
     .said = "both are on now"},
    {.name = "VC_12_shards_TT",
     .overrides = spelled_twice(kShards, "true", "true"),
     .values = both(kShards, "true")},
    {.name = "VC_12_shards_FF",
     .overrides = spelled_twice(kShards, "false", "false"),
     .values = both(kShards, "false")},
    {.name = "VC_12_gathers_TF",
     .overrides = spelled_twice(kGathers, "true", "false"),
     .values = both(kGathers, "true"),
     .said = "both are on now"},
    {.name = "VC_12_gathers_FT",
     .overrides = spelled_twice(kGathers, "false", "true"),
     .values = both(kGathers, "true"),
     .said = "both are on now"},
    {.name = "VC_12_gathers_FF",
     .overrides = spelled_twice(kGathers, "false", "false"),
     .values = both(kGathers, "false")},
    {.name = "ShardsAgreeBeforeTheyDecide",
     .overrides = kGpt + "optimizer.use_distributed_optimizer=true runtime.world_size=4",
     .values = {{"ddp.use_distributed_optimizer", "true"}, {"ddp.overlap_grad_reduce", "true"}}},
    {.name = "InstancesOfEqualSize",
     .overrides = kSharded + kInstances +
                  "2 model.num_moe_experts=4 runtime.world_size=8 "
                  "model.context_parallel_size=2 model.expert_model_parallel_size=4",
     .values = {{"ddp.num_distributed_optimizer_instances", "2"}}},
    {.name = "InstancesThatDoNotDivideTheDenseRanks",
     .overrides = kSharded + kInstances + "3 runtime.world_size=8 model.context_parallel_size=2",
     .error = "W128",
     .said = "must divide dp*cp = 8 and edp = 8"},
    {.name = "InstancesThatDoNotDivideTheExpertRanks",
     .overrides = kSharded + kInstances +
                  "4 model.num_moe_experts=4 runtime.world_size=8 "
                  "model.expert_model_parallel_size=4",
     .error = "W128",
     .said = "must divide dp*cp = 8 and edp = 2"},
    {.name = "InstancesOfAWholeOptimizer",
     .overrides = kGpt + kInstances + "2 runtime.world_size=8",
     .error = "W129",
     .said = "ddp.use_distributed_optimizer = false"},
    {.name = "NoInstance",
     .overrides = kSharded + kInstances + "0 runtime.world_size=8",
     .error = "W1",
     .said = "ddp.num_distributed_optimizer_instances = 0 is out of range"},
    {.name = "FullShardsShardTheOptimizer",
     .overrides = kGpt + "ddp.use_megatron_fsdp=true runtime.world_size=4",
     .values = both(kShards, "true")},
};
INSTANTIATE_TEST_SUITE_P(SpelledTwice,
                         OverlapCase,
                         testing::ValuesIn(kSpelledTwiceCases),
                         [](const auto& one) { return std::string(one.param.name); });

const std::map<std::string, std::string> kOn = {
    {"comm_overlap.overlap_moe_expert_parallel_comm", "true"}};

const Case kExpertCases[] = {
    {.name = "CO_20a", .overrides = kOverlap, .values = kOn},
    {.name = "CO_20b", .overrides = kOverlap + "model.mtp_num_layers=0", .values = kOn},
    {.name = "CO_20c", .overrides = kOverlap + "model.mtp_num_layers=1", .values = kOn},
    {.name = "CO_21",
     .overrides = kOverlap + "model.mtp_num_layers=2",
     .error = "C25",
     .said = "at most one layer"},
    {.name = "EX_09",
     .overrides = kOverlap + "model.pipeline_model_parallel_size=4",
     .error = "C19",
     .said = "model.virtual_pipeline_model_parallel_size"},
    {.name = "OneChunkIsSaid",
     .overrides = kOverlap + "model.pipeline_model_parallel_size=4 "
                             "model.virtual_pipeline_model_parallel_size=1",
     .values = kOn},
    {.name = "EX_17",
     .overrides = kOverlap + "model.moe_token_dispatcher_type=allgather",
     .error = "C16",
     .said = "allgather"},
    {.name = "OneRank",
     .overrides = kOverlap + "model.expert_model_parallel_size=1",
     .error = "C14",
     .said = "model.expert_model_parallel_size = 1"},
    {.name = "NoExperts",
     .overrides = kOverlap + "model.num_moe_experts=null",
     .error = "C15",
     .said = "model.num_moe_experts = null"},
    {.name = "Fp32OnGpus", .overrides = kOverlap + "model.bf16=false", .error = "C17"},
    {.name = "Fp32OnCpus",
     .overrides = kOverlap + "model.bf16=false hardware.gpu=null",
     .values = kOn,
     .said = "runs in fp32, as CPU ranks may"},
    {.name = "FullRecompute",
     .overrides = kOverlap + "model.recompute_granularity=full model.recompute_method=uniform "
                             "model.recompute_num_layers=1",
     .error = "C20"},
    {.name = "RecomputeMethod",
     .overrides = kOverlap + "model.recompute_method=uniform",
     .error = "C21",
     .said = "model.recompute_method"},
    {.name = "RecomputeLayers",
     .overrides = kOverlap + "model.recompute_num_layers=1",
     .error = "C22",
     .said = "model.recompute_num_layers"},
    {.name = "ModuleOfExperts",
     .overrides = kOverlap + "model.recompute_granularity=selective "
                             "model.recompute_modules=[core_attn,moe]",
     .error = "C23"},
    {.name = "OtherModules",
     .overrides = kOverlap + "model.recompute_granularity=selective "
                             "model.recompute_modules=[core_attn,layernorm]",
     .values = kOn},
    {.name = "SharedOverlap",
     .overrides = kOverlap + "model.moe_shared_expert_overlap=true",
     .error = "C24"},
};
INSTANTIATE_TEST_SUITE_P(Experts,
                         OverlapCase,
                         testing::ValuesIn(kExpertCases),
                         [](const auto& one) { return std::string(one.param.name); });

const std::string kSharedExpert = "model.moe_shared_expert_intermediate_size=512 ";
const std::string kUnfused = "model.gradient_accumulation_fusion=false ";
const std::map<std::string, std::string> kDelayed = {{"comm_overlap.delay_wgrad_compute", "true"}};

const Case kDelayCases[] = {
    {.name = "CO_23", .overrides = kDelay, .values = kDelayed},
    {.name = "CO_25", .overrides = kMoe + "comm_overlap.delay_wgrad_compute=true", .error = "C28"},
    {.name = "CO_26",
     .overrides = kDelay + kUnfused + "model.cuda_graph_modules=[attn]",
     .error = "C30",
     .said = "gradient_accumulation_fusion"},
    {.name = "CO_26_captured",
     .overrides = kDelay + kUnfused + kTeGraphs + "model.cuda_graph_modules=[attn]",
     .error = "C30",
     .said = "gradient_accumulation_fusion"},
    {.name = "CO_26_old_name",
     .overrides = kDelay + kUnfused + kTeGraphs + "model.cuda_graph_scope=[attn]",
     .error = "C30"},
    {.name = "EX_14",
     .overrides =
         kDelay + kUnfused + kTeGraphs + kSharedExpert + "model.cuda_graph_modules=[moe_router]",
     .error = "C30",
     .said = "moe_router with the shared expert"},
    {.name = "RouterWithoutSharedExpert",
     .overrides = kDelay + kUnfused + kTeGraphs + "model.cuda_graph_modules=[moe_router]",
     .values = kDelayed},
    {.name = "WholeLayerHasAttention",
     .overrides = kDelay + kTeGraphs + "model.add_qkv_bias=true",
     .error = "C31",
     .said = "the whole layer"},
    {.name = "BiasesBesideARouter",
     .overrides = kDelay + kTeGraphs +
                  "model.add_qkv_bias=true "
                  "model.cuda_graph_modules=[moe_router]",
     .values = kDelayed},
    {.name = "BucketsWaitForDelayedGradients",
     .overrides = kDelay + "ddp.use_distributed_optimizer=true",
     .values = {{"ddp.delay_wgrad_compute", "true"}}},
    {.name = "TwoCovers",
     .overrides = kOverlap + "model.overlap_dispatch_backward_with_experts_wgrad=true",
     .error = "TC-72"},
};
INSTANTIATE_TEST_SUITE_P(Delay, OverlapCase, testing::ValuesIn(kDelayCases), [](const auto& one) {
  return std::string(one.param.name);
});

TEST(OverlapRules, WhatIsForcedOffIsReported) {
  const Verdict verdict =
      judge_words(kSharded + "ddp.overlap_grad_reduce=true ddp.bucket_size=123");
  for (const char* key : {"ddp.overlap_grad_reduce", "ddp.bucket_size"}) {
    EXPECT_TRUE(std::ranges::any_of(verdict.automatic, [&](const Finding& finding) {
      return finding.id == "C35" && finding.key == key && finding.from != finding.to;
    })) << key;
  }
}

}  // namespace overlap_cases_test
}  // namespace weft::rules
