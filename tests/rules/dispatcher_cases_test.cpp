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

TEST(Dispatchers, ARefusedBackendNamesTheGpusItRunsOn) {
  const Verdict verdict = judge_words(DEEPEP "hardware.compute_capability=7");
  ASSERT_EQ(verdict.errors.size(), 1u);
  for (const char* part : {"Ampere", "Hopper", "Blackwell (B200/B300)", "deepep", "7"}) {
    EXPECT_NE(verdict.errors[0].message.find(part), std::string::npos) << part;
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

}  // namespace dispatcher_cases_test
}  // namespace weft::rules

#undef EXPERTS
#undef FLEX
#undef DEEPEP
#undef HYBRIDEP
#undef NCCLEP
#undef WORLD
