// Suggestions come in the guide's order, with gains from the run's numbers.
#include "weft/report/next.h"

#include <gtest/gtest.h>

namespace weft::report {
namespace next_test {

// Trace of 100 ms without a config: ep exposed for 30 ms, the host late for 20.
Report traced() {
  Report report;
  report.traced_steps = 1;
  report.walls =
      {.step = 100, .compute = 40, .host = 20, .communication = 30, .idle = 10, .gemm = 25};
  report.exposure.kinds["ep"] = {
      .communication_ms = 35,
      .exposed_ms = 34,
      .reasons = {.no_partner_ms = 28, .short_cover_ms = 2, .peer_ms = 4}};
  report.experts = Experts{.rows_ms = 11};
  return report;
}

const Suggestion* find(const std::vector<Suggestion>& all, std::string_view change) {
  const auto found = std::ranges::find_if(all, [&](const Suggestion& one) {
    return one.change.find(change) != one.change.npos;
  });
  return found == all.end() ? nullptr : &*found;
}

TEST(Next, GainsAreWhatTheTraceSaysAndNoMore) {
  const Report report = traced();
  const std::vector<Suggestion> next = next_to_try({.report = report});
  ASSERT_EQ(next.size(), 3u);
  const Suggestion* overlap = find(next, "overlap_moe_expert_parallel_comm=true");
  ASSERT_NE(overlap, nullptr);
  EXPECT_DOUBLE_EQ(*overlap->gain_ms, 30);  // a wait for peers moves no data
  EXPECT_EQ(overlap->basis, Suggestion::Basis::AtMost);
  const Suggestion* graphs = find(next, "cuda_graph_impl");
  ASSERT_NE(graphs, nullptr);
  EXPECT_DOUBLE_EQ(*graphs->gain_ms, 20);
  const Suggestion* fusion = find(next, "moe_permute_fusion");
  ASSERT_NE(fusion, nullptr);
  EXPECT_DOUBLE_EQ(*fusion->gain_ms, 11) << "of kernels that bring rows, not of casts";
  for (const Suggestion& one : next) {
    EXPECT_FALSE(one.because.empty());
    EXPECT_FALSE(one.rule.empty());
  }
}

TEST(Next, LargestGainsComeFirstInsideAPhase) {
  const Report report = traced();
  const std::vector<Suggestion> next = next_to_try({.report = report});
  for (std::size_t i = 1; i < next.size(); ++i) {
    EXPECT_GE(next[i].phase, next[i - 1].phase);
    EXPECT_TRUE(next[i].phase > next[i - 1].phase || *next[i].gain_ms <= *next[i - 1].gain_ms);
  }
}

TEST(Next, WhatGainsLessThanAHundredthIsNotOffered) {
  Report report = traced();
  report.walls.host = 0.9;
  report.exposure.kinds["ep"].reasons = {.no_partner_ms = 0.9};
  report.experts->rows_ms = 0.5;
  EXPECT_TRUE(next_to_try({.report = report}).empty());
}

TEST(Next, WithoutATraceTheFirstThingIsOne) {
  Report report;
  report.steps = StepTimes{.steps = 4, .median_ms = 10};
  const std::vector<Suggestion> next = next_to_try({.report = report});
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].phase, Phase::Profile);
  EXPECT_EQ(next[0].change, "runtime.trace=true");
  EXPECT_FALSE(next[0].gain_ms);
}

TEST(Next, ChangesThatTheRunMayNotMakeAreNotOffered) {
  const Report report = traced();
  config::Config run;  // one rank, no experts: no overlap is possible
  EXPECT_EQ(find(next_to_try({.report = report, .run = &run}), "overlap_moe"), nullptr);
}

// Trace of another program, which names operations but no axes: a third of it sends and receives.
TEST(Next, CommunicationWithoutAnAxisHasIdeasToo) {
  Report report;
  report.traced_steps = 1;
  report.walls = {.step = 100, .compute = 43, .communication = 34, .idle = 23, .gemm = 38};
  report.exposure.kinds["send_recv"] = {.communication_ms = 40,
                                        .exposed_ms = 34,
                                        .reasons = {.no_partner_ms = 34}};
  report.experts = Experts{.rows_ms = 4};
  const std::vector<Suggestion> next = next_to_try({.report = report});
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0].phase, Phase::Profile) << "what is idle is looked at first";
  EXPECT_NE(next[0].because.find("23 of 100 ms"), std::string::npos) << next[0].because;
  EXPECT_NE(next[1].change.find("overlap_moe_expert_parallel_comm=true"), std::string::npos);
  EXPECT_DOUBLE_EQ(*next[1].gain_ms, 34);
  EXPECT_NE(next[1].rule.find("overlap_p2p_comm"), std::string::npos) << next[1].rule;
  EXPECT_NE(find(next, "moe_permute_fusion"), nullptr);
  // A trace with host launches was recorded with the host.
  report.has_launches = true;
  EXPECT_EQ(find(next_to_try({.report = report}), "record the host"), nullptr);
}

// A convolution, an embedding table: the trace does not tell the purpose of an all-to-all or of
// copies.
TEST(Next, ATraceWithoutExpertsGetsNoAdviceAboutThem) {
  Report report = traced();
  report.experts = std::nullopt;
  for (const char* operation : {"all_to_all", "send_recv", "all_gather"}) {
    report.exposure.kinds[operation] = {.communication_ms = 20,
                                        .exposed_ms = 12,
                                        .reasons = {.no_partner_ms = 12}};
  }
  report.exposure.kinds.erase("ep");
  const std::vector<Suggestion> next = next_to_try({.report = report, .run = nullptr});
  ASSERT_FALSE(next.empty());
  for (const Suggestion& one : next) EXPECT_EQ(one.change.find("moe"), std::string::npos);
  EXPECT_NE(find(next, "cuda_graph_impl=full_iteration"), nullptr);
}

TEST(Next, WhatIsHiddenForTheMostPartIsNotAdvisedToOverlap) {
  Report report = traced();
  report.exposure.kinds["ep"].hidden_any = 0.96;
  report.exposure.kinds["all_gather"] = {.communication_ms = 90,
                                         .hidden_any = 0.9,
                                         .exposed_ms = 9,
                                         .reasons = {.no_partner_ms = 9}};
  EXPECT_EQ(find(next_to_try({.report = report}), "overlap"), nullptr);
}

// The apparent bubble is a wait for a core.
TEST(Next, RanksThatShareCoresGetNoAdviceOnTheirPipeline) {
  Report report = traced();
  report.walls = {.step = 100, .compute = 40, .bubble = 55, .gemm = 25};
  config::Config run;
  run.model.pipeline_model_parallel_size = 2;
  run.train.global_batch_size = 8;
  run.runtime.world_size = 2;
  EXPECT_NE(find(next_to_try({.report = report, .run = &run}), "global_batch_size"), nullptr);
  report.crowded = "2 ranks share 1 core";
  const std::vector<Suggestion> next = next_to_try({.report = report, .run = &run});
  EXPECT_EQ(find(next, "global_batch_size"), nullptr);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].because, "2 ranks share 1 core");
}

TEST(Next, OneChangeIsOfferedOnce) {
  Report report = traced();
  report.exposure.kinds["all_to_all"] = {.communication_ms = 12,
                                         .exposed_ms = 12,
                                         .reasons = {.no_partner_ms = 12}};
  int offered = 0;
  for (const Suggestion& one : next_to_try({.report = report})) {
    offered += one.change.find("overlap_moe_expert_parallel_comm") != one.change.npos ? 1 : 0;
  }
  EXPECT_EQ(offered, 1);
}

}  // namespace next_test
}  // namespace weft::report
