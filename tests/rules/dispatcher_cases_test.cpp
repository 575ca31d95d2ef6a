// Flex backends by GPU, and backends without their dispatcher.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace dispatcher_cases_test {

#define EXPERTS \
  "model.num_moe_experts=8 model.expert_model_parallel_size=2 train.global_batch_size=2 "
#define FLEX EXPERTS "model.moe_token_dispatcher_type=flex "
#define DEEPEP FLEX "model.moe_flex_dispatcher_backend=deepep "
#define HYBRIDEP FLEX "model.moe_flex_dispatcher_backend=hybridep runtime.ranks_per_node=1 "
#define NCCLEP FLEX "model.moe_flex_dispatcher_backend=ncclep "

TEST(Dispatchers, FlexBackendsAreJudgedByTheGpu) {
  for (const Case& c : {
           Case{.name = "FX-11", .words = DEEPEP "hardware.compute_capability=8"},
           Case{.name = "deepep h100", .words = DEEPEP "hardware.gpu=h100"},
           Case{.name = "deepep b200", .words = DEEPEP "hardware.gpu=b200"},
           Case{.name = "deepep b300", .words = DEEPEP "hardware.gpu=b300"},
           Case{.name = "deepep gb200", .words = DEEPEP "hardware.gpu=gb200", .errors = "F9"},
           Case{.name = "deepep gb300", .words = DEEPEP "hardware.gpu=gb300", .errors = "F9"},
           Case{.name = "FX-14",
           .words = DEEPEP "hardware.compute_capability=7 hardware.device_name=V100",
           .errors = "F9"},
           Case{.name = "deepep 12",
           .words = DEEPEP "hardware.compute_capability=12",
           .errors = "F9"},
           Case{.name = "hybridep a100", .words = HYBRIDEP "hardware.gpu=a100"},
           Case{.name = "hybridep gb200", .words = HYBRIDEP "hardware.gpu=gb200"},
           Case{.name = "hybridep 7",
           .words = HYBRIDEP "hardware.compute_capability=7",
           .errors = "F9"},
           Case{.name = "hybridep 11",
           .words = HYBRIDEP "hardware.compute_capability=11",
           .errors = "F9"},
           Case{.name = "not published", .words = DEEPEP "hardware.gpu=vr200"},
           Case{.name = "a CPU cannot be probed", .words = DEEPEP},
           Case{
               .name = "FX-13",
          .words = EXPERTS "model.moe_flex_dispatcher_backend=deepep hardware.compute_capability=7",
          .warnings = "F11",
          .after = "model.moe_token_dispatcher_type=alltoall "
                   "model.moe_flex_dispatcher_backend=deepep"},
       }) {
    expect_settled(c);
  }
}

TEST(Dispatchers, ARefusedBackendNamesTheGpusItRunsOn) {
  const Verdict verdict = judge_words(DEEPEP "hardware.compute_capability=7");
  ASSERT_EQ(verdict.errors.size(), 1u);
  for (const char* part : {"Ampere", "Hopper", "Blackwell (B200/B300)", "deepep", "7"}) {
    EXPECT_NE(verdict.errors[0].message.find(part), std::string::npos) << part;
  }
}

TEST(Dispatchers, FlexWithoutABackendIsAllToAll) {
  for (const Case& c : {
           Case{.name = "FX-09",
          .words = DEEPEP "hardware.gpu=h100 model.moe_flex_dispatcher_backend=null",
          .automatic = "F8",
          .after = "model.moe_token_dispatcher_type=alltoall "
                   "model.moe_flex_dispatcher_backend=null"},
           Case{.name = "its SMs are then idle",
           .words = FLEX "hardware.gpu=h100 model.moe_flex_dispatcher_num_sms=20",
           .warnings = "F11",
           .automatic = "F8"},
       }) {
    expect_settled(c);
  }
}

TEST(Dispatchers, CpuRanksHaveNoSms) {
  for (const Case& c : {
           Case{.name = "new", .words = DEEPEP "model.moe_flex_dispatcher_num_sms=20"},
           Case{.name = "old of deepep", .words = DEEPEP "model.moe_deepep_num_sms=20"},
           Case{.name = "old of hybridep", .words = HYBRIDEP "model.moe_hybridep_num_sms=20"},
           Case{.name = "alltoall", .words = EXPERTS "model.moe_flex_dispatcher_num_sms=20"},
       }) {
    const Verdict verdict = judge_words(c.words);
    EXPECT_EQ(ids_of(verdict.errors), std::set<std::string>{}) << c.name;
    EXPECT_TRUE(ids_of(verdict.warnings).contains("W22")) << c.name;
    EXPECT_FALSE(ids_of(verdict.warnings).contains("F11")) << c.name << ": said once";
  }
}

TEST(Dispatchers, WhatOnlyCpuRanksLackIsNotSaidOfGpus) {
  for (const char* words :
       {DEEPEP "hardware.gpu=h100 model.moe_flex_dispatcher_num_sms=20",
        HYBRIDEP "hardware.gpu=gb200 model.use_transformer_engine_op_fuser=true"}) {
    EXPECT_FALSE(ids_of(judge_words(words).warnings).contains("W22")) << words;
  }
}

TEST(Dispatchers, HybridEpWantsMachinesAndGroupsThatAreAlike) {
#define WORLD(n, ep, per_machine)                                          \
  "model.num_moe_experts=24 model.moe_token_dispatcher_type=flex "         \
  "model.moe_flex_dispatcher_backend=hybridep train.global_batch_size=24 " \
  "runtime.world_size=" #n " model.expert_model_parallel_size=" #ep        \
  " runtime.ranks_per_node=" #per_machine " "
  for (const Case& c : {
           Case{.name = "no machine size",
          .words = FLEX "model.moe_flex_dispatcher_backend=hybridep",
          .errors = "W64"},
           Case{.name = "no ranks in a machine", .words = WORLD(8, 4, 0), .errors = "W1"},
           Case{.name = "machines that do not fill the world",
           .words = WORLD(8, 4, 3),
           .errors = "W15 W64"},
           Case{.name = "unequal members: [3 1]", .words = WORLD(12, 4, 3), .errors = "W64"},
           Case{.name = "one group in one machine, another in two",
           .words = WORLD(12, 4, 6),
           .errors = "W64"},
           Case{.name = "the same by deepep",
           .words = WORLD(12, 4, 6) "model.moe_flex_dispatcher_backend=deepep"},
           Case{.name = "two machines a group", .words = WORLD(12, 4, 2)},
           Case{.name = "three groups a machine", .words = WORLD(12, 4, 12)},
           Case{.name = "three machines a group", .words = WORLD(12, 6, 2)},
       }) {
    expect_settled(c);
  }
  const auto said = [](std::string_view words, const char* part) {
    const Verdict verdict = judge_words(words);
    ASSERT_EQ(verdict.errors.size(), 1u) << words;
    EXPECT_NE(verdict.errors[0].message.find(part), std::string::npos) << verdict.errors[0].message;
  };
  said(WORLD(12, 4, 3), "[0 1 2 3] lie [3 1]");
  said(WORLD(12, 4, 6), "[0 1 2 3] span 1 of the machines and [4 5 6 7] span 2");
#undef WORLD
}

// The general fix would leave the dispatcher without a backend.
TEST(Dispatchers, WhatIsNotBuiltGivesWayToABackendThatRuns) {
  const auto way_out = [](std::string_view words) {
    const Verdict verdict = judge_words(words);
    EXPECT_EQ(verdict.missing.size(), 1u) << words;
    return verdict.missing.empty() ? "" : verdict.missing.front().fix;
  };
  EXPECT_EQ(way_out(NCCLEP), "use model.moe_flex_dispatcher_backend=deepep");
  EXPECT_EQ(way_out(NCCLEP "model.moe_expert_rank_capacity_factor=1.5 "
                           "model.use_transformer_engine_op_fuser=true"),
            "use model.moe_flex_dispatcher_backend=hybridep");
}

TEST(Dispatchers, HybridEpPadsUnevenInputsUnlessGraphsAreOn) {
  for (const Case& c : {
           Case{.name = "TF-07",
          .words = HYBRIDEP,
          .automatic = "F10",
          .after = "model.moe_hybridep_pad_uneven_dispatch_inputs=true"},
           Case{.name = "TF-08",
           .words = DEEPEP,
           .after = "model.moe_hybridep_pad_uneven_dispatch_inputs=false"},
           Case{.name = "with graphs the key is left alone",
           .words = HYBRIDEP "model.cuda_graph_impl=transformer_engine "
                             "model.cuda_graph_modules=[attn] model.use_te_rng_tracker=true",
           .after = "model.moe_hybridep_pad_uneven_dispatch_inputs=false"},
       }) {
    expect_settled(c);
  }
}

TEST(Dispatchers, HybridEpStaysInsideARack) {
#define WIDE                                                                            \
  "model.num_moe_experts=144 model.moe_router_dtype=fp32 model.moe_ffn_hidden_size=16 " \
  "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep "
  for (const Case& c : {
           Case{.name = "72 on gb200",
          .words = WIDE "hardware.gpu=gb200 model.expert_model_parallel_size=72 "
                        "train.global_batch_size=72"},
           Case{.name = "144 on gb200",
           .words = WIDE "hardware.gpu=gb200 model.expert_model_parallel_size=144 "
                         "train.global_batch_size=144",
           .errors = "F14"},
           Case{.name = "144 on r100",
           .words = WIDE "hardware.gpu=r100 model.expert_model_parallel_size=144 "
                         "train.global_batch_size=144",
           .errors = "F14"},
           Case{.name = "144 on h100",
           .words = WIDE "hardware.gpu=h100 model.expert_model_parallel_size=144 "
                         "train.global_batch_size=144"},
       }) {
    expect_settled(c);
  }
#undef WIDE
}

TEST(Dispatchers, BackendsBindWhatGoesWithThem) {
  for (const Case& c : {
           Case{.name = "deepep alone",
          .words = DEEPEP "hardware.gpu=h100 model.expert_model_parallel_size=1",
          .errors = "TC-28"},
           Case{.name = "deepep alone on a CPU rank",
           .words = DEEPEP "model.expert_model_parallel_size=1"},
           Case{.name = "etp is a group too",
           .words = DEEPEP "model.expert_model_parallel_size=1 "
                           "model.tensor_model_parallel_size=2"},
           Case{.name = "hybridep alone", .words = HYBRIDEP "model.expert_model_parallel_size=1"},
           Case{.name = "a dense model builds no dispatcher",
           .words = "model.moe_token_dispatcher_type=flex "
                    "model.moe_flex_dispatcher_backend=deepep"},
           Case{.name = "ncclep drops nothing",
           .words = NCCLEP "model.moe_expert_capacity_factor=1 "
                           "model.moe_pad_expert_input_to_capacity=true",
           .errors = "TC-29"},
           Case{.name = "ncclep in a fixed shape",
           .words = NCCLEP "model.moe_expert_rank_capacity_factor=1.5",
           .errors = "TC-29"},
           Case{.name = "ncclep in a fixed shape, fused",
           .words = NCCLEP "model.moe_expert_rank_capacity_factor=1.5 "
                           "model.use_transformer_engine_op_fuser=true"},
           Case{.name = "the same in fp8 on Hopper",
           .words = NCCLEP "model.moe_expert_rank_capacity_factor=1.5 model.fp8=hybrid "
                           "model.use_transformer_engine_op_fuser=true hardware.gpu=h100",
           .errors = "TC-29"},
           Case{.name = "mxfp8 on the wire",
           .words = NCCLEP "model.moe_dispatch_fwd_dtype=mxfp8 "
                           "model.use_transformer_engine_op_fuser=true"},
           Case{.name = "mxfp8 by deepep",
           .words = DEEPEP "model.moe_dispatch_fwd_dtype=mxfp8",
           .errors = "TC-24"},
       }) {
    expect_settled(c);
  }
}

}  // namespace dispatcher_cases_test
}  // namespace weft::rules

#undef EXPERTS
#undef FLEX
#undef DEEPEP
#undef HYBRIDEP
#undef NCCLEP
#undef WORLD
#undef WIDE
