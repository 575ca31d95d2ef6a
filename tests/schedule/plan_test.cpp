#include "weft/schedule/plan.h"

#include <gtest/gtest.h>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/text/summary.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace plan_test {

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// One line per pipeline rank.
std::string summaries(const PlanCase& c) {
  std::string text;
  for (const RankPlan& plan : plans_of(c)) {
    text += base::text("rank {}: {}\n", plan.anatomy.pp_rank, summary(plan.training, plan.anatomy));
  }
  return text;
}

TEST(Plan, EveryKnobAndShapeIsLegalAndVerifies) {
  for (const auto& [c, plans] : many_plans()) {
    ASSERT_TRUE(rules::judge(config_of(c)).legal()) << name(c);
    EXPECT_EQ(joined(verify_plan(plans)), "") << name(c);
  }
}

TEST(Plan, AGlobalLossMeetsAllRanksWithOtherTokens) {
  for (const int ep : {1, 2}) {
    const PlanCase c{.layers = "mm", .ep = ep, .dp = 4, .pp = 2, .global_loss = true};
    const config::Config config = config_of(c);
    const grid::Grid grid(derive::layout_of(config));
    const Graph training = plan_step(config, grid)[1].training;
    const int rank = 7;
    ASSERT_EQ(grid.coordinate(rank).pp, 1);
    const Entry& entry = training.entries[find(training, "1F0.balance")];
    EXPECT_EQ(entry.lane, Lane::Dp) << ep;
    const derive::Pipeline pipeline = derive::pipeline_of(config);
    EXPECT_EQ(ranks_of_entry(grid, pipeline, rank, entry),
              grid.group_of(grid::GroupKind::DpCp, rank));
    EXPECT_EQ(std::ssize(ranks_of_entry(grid, pipeline, rank, entry)), 4) << ep;
  }
}

TEST(Plan, TextsParseBack) {
  for (const auto& [c, plans] : many_plans()) {
    for (const RankPlan* plan : {&plans.front(), &plans.back()}) {
      const std::string text = print(plan->training);
      EXPECT_EQ(print(parse_graph(text)), text) << name(c);
    }
  }
}

TEST(Plan, InterleavedOrderIsAsInTheGoldenFile) {
  const PlanCase c{.layers = "mm", .dp = 2, .micro_batches = 2, .overlap = true};
  EXPECT_TRUE(matches_golden("interleaved_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, DelayedWeightGradientsAreAsInTheGoldenFile) {
  const PlanCase c{.layers = "mm", .dp = 2, .micro_batches = 2, .overlap = true, .delay = true};
  EXPECT_TRUE(matches_golden("interleaved_delayed_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, DispatchesBesideAttentionAreAsInTheGoldenFile) {
  const PlanCase c{.layers = "mmm",
                   .dp = 2,
                   .micro_batches = 2,
                   .overlap = true,
                   .delay = true,
                   .narrow = true};
  EXPECT_TRUE(matches_golden("interleaved_attention_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, EarlyReleaseIsAsInTheGoldenFile) {
  const PlanCase c{.layers = "mm", .dp = 2, .micro_batches = 2, .overlap = true, .early = true};
  EXPECT_TRUE(matches_golden("interleaved_early_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, ExpertGradientsUnderDispatchAreAsInTheGoldenFile) {
  const PlanCase c{.layers = "m", .dp = 2, .micro_batches = 1, .experts_wgrad = true};
  EXPECT_TRUE(matches_golden("experts_wgrad_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, SharedExpertsAreAsInTheGoldenFiles) {
  PlanCase c{.layers = "m", .dp = 2, .micro_batches = 1, .shared = true};
  EXPECT_TRUE(matches_golden("shared_experts_ep.txt", print(plans_of(c)[0].training)));
  c.shared_overlap = true;
  EXPECT_TRUE(matches_golden("shared_experts_overlapped_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, TokenSlicesAreAsInTheGoldenFiles) {
  PlanCase c{.layers = "m", .dp = 2, .micro_batches = 1, .slices = 2};
  const RankPlan staggered = plans_of(c)[0];
  EXPECT_TRUE(matches_golden("slices_plain_ep.txt",
                             print(build_training(staggered.anatomy, staggered.shape))));
  EXPECT_TRUE(matches_golden("slices_ep.txt", print(staggered.training)));
  c = {.layers = "mm", .dp = 2, .micro_batches = 2, .overlap = true, .slices = 2};
  EXPECT_TRUE(matches_golden("slices_interleaved_ep.txt", print(plans_of(c)[0].training)));
}

TEST(Plan, PipelinesAreAsInTheGoldenFiles) {
  PlanCase c{.layers = "mm", .pp = 2, .micro_batches = 2, .tied = true};
  for (const RankPlan& plan : plans_of(c)) {
    EXPECT_TRUE(matches_golden(base::text("one_f_one_b_rank{}.txt", plan.anatomy.pp_rank),
                               print(plan.training)));
  }
  c = {.layers = "mm",
       .pp = 2,
       .micro_batches = 3,
       .overlap = true,
       .delay = true,
       .overlap_p2p = true};
  for (const RankPlan& plan : plans_of(c)) {
    EXPECT_TRUE(matches_golden(base::text("interleaved_pipeline_rank{}.txt", plan.anatomy.pp_rank),
                               print(plan.training)));
  }
}

TEST(Plan, OrdersThatPutWeightGradientsOffAreAsInTheGoldenFiles) {
  using enum config::PipelineSchedule;
  PlanCase c{.layers = "mm",
             .pp = 2,
             .micro_batches = 2,
             .overlap_p2p = true,
             .schedule = ZeroBubble};
  EXPECT_TRUE(matches_golden("zb_h1_rank1.txt", print(plans_of(c)[1].training)));
  c = {.layers = "mmmm",
       .pp = 2,
       .vpp = 2,
       .micro_batches = 2,
       .tied = true,
       .overlap_p2p = true,
       .schedule = DualPipeV};
  EXPECT_TRUE(matches_golden("dualpipev_rank1.txt", print(plans_of(c)[1].training)));
  EXPECT_TRUE(matches_golden("dualpipev_forward_rank1.txt", print(plans_of(c)[1].forward)));
  c = {.layers = "mm", .pp = 2, .micro_batches = 3, .defer_head = true, .defer_limit = 2};
  EXPECT_TRUE(matches_golden("deferred_head_rank1.txt", print(plans_of(c)[1].training)));
}

TEST(Plan, TurnsOfFourRanksThatPutWeightGradientsOff) {
  using enum config::PipelineSchedule;
  PlanCase c{.layers = "mmmmmmmm",
             .pp = 4,
             .micro_batches = 8,
             .overlap_p2p = true,
             .schedule = ZeroBubble};
  EXPECT_TRUE(matches_golden("turns_zb_h1_pp4_m8.txt", summaries(c)));
  c.vpp = 2;
  c.schedule = DualPipeV;
  c.overlap = true;
  EXPECT_TRUE(matches_golden("turns_dualpipev_pp4_m8.txt", summaries(c)));
}

TEST(Plan, AVHandsOverAtItsTurn) {
  const PlanCase c{.layers = "mmmm",
                   .pp = 2,
                   .vpp = 2,
                   .micro_batches = 3,
                   .tied = true,
                   .overlap_p2p = true,
                   .schedule = config::PipelineSchedule::DualPipeV};
  const std::vector<RankPlan> plans = plans_of(c);
  const std::vector<Chunk>& first = plans[0].anatomy.chunks;
  const std::vector<Chunk>& last = plans[1].anatomy.chunks;
  EXPECT_TRUE(first[0].has_embed && first[1].has_head);
  EXPECT_EQ(plans[0].anatomy.tie, Tie::Local);
  EXPECT_EQ(plans[1].anatomy.tie, Tie::None);
  EXPECT_TRUE(last[0].output_stays_on_rank && last[1].input_stays_on_rank);
  EXPECT_FALSE(last[0].sends() || last[1].receives());
  const Graph& graph = plans[1].training;
  EXPECT_TRUE(Reach(graph).before(find(graph, "1F0.merge"), find(graph, "2F0.attention")));
  EXPECT_TRUE(Reach(graph).before(find(graph, "2D0.attention"), find(graph, "1D0.merge")));
}

TEST(Plan, WorkedExamplesOfTwoRanksAndTwoChunks) {
  PlanCase c{.layers = "mmmm", .pp = 2, .vpp = 2, .micro_batches = 4, .overlap_p2p = true};
  EXPECT_TRUE(matches_golden("turns_pp2_vpp2_m4_plain.txt", summaries(c)));
  c.overlap = true;
  EXPECT_TRUE(matches_golden("turns_pp2_vpp2_m4_overlap.txt", summaries(c)));
  c.delay = true;
  EXPECT_TRUE(matches_golden("turns_pp2_vpp2_m4_overlap.txt", summaries(c)));
}

TEST(Plan, WorkedExamplesOfFourRanksAndTwoChunks) {
  PlanCase c{.layers = "mmmmmmmm", .pp = 4, .vpp = 2, .micro_batches = 8, .overlap_p2p = true};
  EXPECT_TRUE(matches_golden("turns_pp4_vpp2_m8_plain.txt", summaries(c)));
  c.overlap = true;
  EXPECT_TRUE(matches_golden("turns_pp4_vpp2_m8_overlap.txt", summaries(c)));
}

TEST(Plan, InterleavedTurnsAreAllThatTheWarmUpLeaves) {
  for (const auto& [c, plans] : many_plans()) {
    if (!c.overlap) continue;
    for (const RankPlan& plan : plans) {
      const std::string text = summary(plan.training, plan.anatomy);
      const auto pairs = std::ranges::count(text, '|');
      // A chunk without layers has no node to pair.
      if (!c.layout.empty()) continue;
      const auto rounds = training_rounds(plan.shape);
      EXPECT_EQ(pairs, std::ranges::count(rounds, 2u, &std::vector<Turn>::size)) << name(c) << "\n"
                                                                                 << text;
      if (c.schedule == config::PipelineSchedule::DualPipeV) continue;
      EXPECT_EQ(pairs, c.micro_batches * c.vpp - warm_up(plan.shape)) << name(c);
    }
  }
}

TEST(Plan, EarlyReleaseKeepsNoMoreThanTheLateOne) {
  PlanCase c{.layers = "mmmm", .micro_batches = 4, .overlap = true};
  const auto mark = [&] {
    const RankPlan plan = plans_of(c)[0];
    return activation_mark(plan.training, plan.anatomy, {.tokens = 64, .rows = 128});
  };
  const std::int64_t late = mark();
  c.early = true;
  EXPECT_LE(mark(), late);
  c.early = c.overlap = false;
  EXPECT_LT(mark(), late);
}

// In an interleaved step one micro-batch grows while the other shrinks: never two whole ones.
TEST(Plan, InterleavedStepKeepsLittleMoreThanOneMicroBatch) {
  PlanCase c{.layers = "mmmmmmmm", .micro_batches = 4};
  const RankPlan plain = plans_of(c)[0];
  c.overlap = true;
  const RankPlan interleaved = plans_of(c)[0];
  const double ratio =
      static_cast<double>(
          activation_mark(interleaved.training, interleaved.anatomy, {.tokens = 64, .rows = 128})) /
      static_cast<double>(
          activation_mark(plain.training, plain.anatomy, {.tokens = 64, .rows = 128}));
  EXPECT_GT(ratio, 1.0);
  EXPECT_LT(ratio, 1.35);
}

TEST(Plan, PipelineRanksKeepAsManyMicroBatchesAsAreBehindThem) {
  const PlanCase c{.layers = "mmmm", .pp = 4, .micro_batches = 8};
  const std::vector<RankPlan> plans = plans_of(c);
  const auto mark = [&](std::size_t rank) {
    return activation_mark(plans[rank].training, plans[rank].anatomy, {.tokens = 64, .rows = 128});
  };
  const std::int64_t one = mark(2) / 2;
  EXPECT_EQ(mark(2), 2 * one);
  EXPECT_EQ(mark(1), 3 * one);
  EXPECT_EQ(mark(0), 4 * one);
}

// A slice has its own row counts; other kept bytes follow tokens and rows.
Anatomy without_counts(Anatomy anatomy) {
  for (std::vector<PieceAnatomy>& layer : anatomy.layers) {
    for (PieceAnatomy& piece : layer) piece.kept.fixed = 0;
  }
  return anatomy;
}

// Kept bytes of a layer do not depend on slices, also in the interleaved order.
TEST(Plan, SlicesKeepTogetherWhatTheWholeKeeps) {
  for (const bool overlap : {false, true}) {
    PlanCase c{.layers = "mmd", .micro_batches = 3, .overlap = overlap, .shared = true};
    RankPlan whole = plans_of(c)[0];
    whole.anatomy = without_counts(whole.anatomy);
    const std::int64_t mark =
        activation_mark(whole.training, whole.anatomy, {.tokens = 64, .rows = 130});
    for (const int slices : {2, 3, 7}) {
      c.slices = slices;
      RankPlan sliced = plans_of(c)[0];
      sliced.anatomy = without_counts(sliced.anatomy);
      EXPECT_EQ(activation_mark(build_training(sliced.anatomy, sliced.shape),
                                sliced.anatomy,
                                {.tokens = 64, .rows = 130}),
                activation_mark(build_training(whole.anatomy, whole.shape),
                                whole.anatomy,
                                {.tokens = 64, .rows = 130}));
      EXPECT_LE(activation_mark(sliced.training, sliced.anatomy, {.tokens = 64, .rows = 130}), mark)
          << slices;
    }
  }
}

TEST(Plan, ALiftedBudgetBringsTheSizesBack) {
  config::Config config = config_of({.layers = "m"});
  config.model.moe_expert_rank_capacity_factor = 1.5;
  config.model.moe_token_dispatcher_type = config::Dispatcher::Flex;
  config.model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
  const grid::Grid grid(derive::layout_of(config));
  const auto sizes = [](const Graph& graph) {
    return std::ranges::count(graph.entries, Piece::Sizes, [](const Entry& entry) {
      return entry.node.piece;
    });
  };
  const std::vector<RankPlan> budgeted = plan_step(config, grid);
  const std::vector<RankPlan> lifted = plan_step(config, grid, config::RowBudget::Lifted);
  EXPECT_EQ(joined(verify_plan(budgeted)), "");
  EXPECT_EQ(joined(verify_plan(lifted)), "");
  EXPECT_EQ(sizes(budgeted[0].training), 0);
  EXPECT_EQ(sizes(lifted[0].training), 4);
}

}  // namespace plan_test
}  // namespace weft::schedule
