// Parts on the tp lane: exchanges of tensor-parallel ranks, and their cover.
#include <gtest/gtest.h>

#include <set>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/block/feed_forward.h"
#include "weft/derive/blocks.h"
#include "weft/derive/derived.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/passes/recompute.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace tensor_parallel_test {

const PlanCase kDense{.layers = "d", .ep = 1, .dp = 1, .tp = 2, .micro_batches = 1};

TEST(TensorParallel, SubLayersAreSplitAndExchangeTokens) {
  EXPECT_TRUE(matches_golden("tensor_parallel.txt", print(plans_of(kDense)[0].training)));
}

TEST(TensorParallel, TheGroupOfAPartTakesPartInIt) {
  const PlanCase c{.layers = "m", .dp = 2, .tp = 2, .pp = 1, .micro_batches = 1, .shared = true};
  const config::Config config = config_of(c);
  const grid::Grid grid(derive::layout_of(config));
  const RankPlan plan = plans_of(c)[0];
  const Graph& graph = plan.training;
  const derive::Pipeline& pipeline = plan.anatomy.pipeline;
  for (const std::string node :
       {"0F0.attention.gather", "0D0.attention.scatter", "0R0.shared.gather", "reduce.copied"}) {
    const Entry& entry = graph.entries[find(graph, node)];
    EXPECT_EQ(entry.lane, Lane::Tp) << node;
    EXPECT_EQ(ranks_of_entry(grid, pipeline, 3, entry), grid.group_of(grid::GroupKind::Tp, 3))
        << node;
    EXPECT_EQ(stages_of_entry(pipeline, 0, entry), std::vector{0}) << node;
  }
}

TEST(TensorParallel, WhatWasGatheredIsGatheredAgainBesideTheInputGradient) {
  const Graph graph = plans_of(kDense)[0].training;
  for (const std::string node : {"0D0.mlp.fc2", "0D0.mlp.act", "0D0.mlp.fc1"}) {
    EXPECT_TRUE(run_together(graph, "0R0.mlp.gather", node)) << node;
  }
  for (const std::string node : {"0D0.attention.core", "0D0.attention.qkv"}) {
    EXPECT_TRUE(run_together(graph, "0R0.attention.gather", node)) << node;
  }
  const Reach reach(graph);
  EXPECT_TRUE(reach.before(find(graph, "0R0.mlp.gather"), find(graph, "0W0.mlp.fc1")));
}

TEST(TensorParallel, AWeightGradientCoversTheScatterThatItsInputGradientSetsOff) {
  const Graph graph = plans_of(kDense)[0].training;
  EXPECT_TRUE(run_together(graph, "0W0.mlp.fc1", "0D0.mlp.gather"));
  EXPECT_TRUE(run_together(graph, "0W0.attention.qkv", "0D0.attention.gather"));
}

TEST(TensorParallel, NothingThatWasGatheredIsKept) {
  const RankPlan plan = plans_of(kDense)[0];
  const config::ModelConfig model = config_of(kDense).model;
  const Load load{.tokens = 64};
  const std::vector<std::int64_t> kept =
      kept_after_each(plan.training, plan.anatomy, [&](const Node&) { return load; });
  const auto of = [&](const std::string& node) { return kept[find(plan.training, node)]; };
  const std::int64_t gathered = 2 * 64 * model.hidden_size * 4;
  const PieceAnatomy qkv = piece_of(plan.anatomy, parse_node("0F0.attention.qkv"));
  EXPECT_EQ(of("0F0.attention.gather") - of("0F0.attention.norm"), gathered);
  EXPECT_EQ(of("0F0.attention.qkv") - of("0F0.attention.gather"), qkv.kept.of(load) - gathered);
  EXPECT_EQ(kept.back(), 0);
}

TEST(TensorParallel, SharedExpertsExchangeUnderDispatchAndCombine) {
  const PlanCase c{.layers = "m",
                   .tp = 2,
                   .micro_batches = 1,
                   .shared = true,
                   .shared_overlap = true};
  const Graph graph = plans_of(c)[0].training;
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"0F0.shared.gather", "0F0.dispatch"},
      {"0F0.shared.scatter", "0F0.combine"},
      {"0D0.shared.scatter", "0D0.combine"},
      {"0D0.shared.gather", "0D0.dispatch"}};
  for (const auto& [shared, travels] : pairs) {
    EXPECT_TRUE(run_together(graph, shared, travels)) << shared;
  }
}

// The ends of the model have parts like layers.
TEST(TensorParallel, EmbeddingAndHeadMayExchangeToo) {
  RankPlan plan = plans_of({.layers = "d", .ep = 1, .dp = 1, .micro_batches = 2})[0];
  const auto part = [](Piece piece, Part name, std::vector<PieceName> after) {
    const bool travels = row_of(name).members == Members::Tensor;
    return PieceAnatomy{.piece = piece,
                        .part = name,
                        .lane = travels ? Lane::Tp : Lane::Compute,
                        .after = std::move(after),
                        .kept = {.per_token = 4},
                        .remade = {.per_token = 4}};
  };
  using enum Piece;
  Anatomy& anatomy = plan.anatomy;
  anatomy.embed = {part(Embed, Part::Proj, {}), part(Embed, Part::Scatter, {{Embed, Part::Proj}})};
  anatomy.head = {part(Head, Part::Norm, {}),
                  part(Head, Part::Gather, {{Head, Part::Norm}}),
                  part(Head, Part::Proj, {{Head, Part::Gather}})};
  Graph graph = build_training(anatomy, plan.shape);
  anatomy = with_recomputation(anatomy, std::vector<PieceName>{{Head, Part::Gather}});
  graph = recompute(graph, anatomy, plan.shape.micro_batches);
  EXPECT_EQ(sentences(verify(graph, anatomy, 2, StepKind::Training)), std::vector<std::string>());
  const Reach reach(graph);
  const std::vector<std::string> chain{"F0.embed.proj",
                                       "F0.embed.scatter",
                                       "0F0.attention",
                                       "F0.head.norm",
                                       "F0.head.gather",
                                       "F0.head.proj",
                                       "D0.head.proj",
                                       "D0.head.gather",
                                       "D0.head.norm",
                                       "0D0.mlp",
                                       "0D0.attention",
                                       "D0.embed.scatter",
                                       "W0.embed.proj"};
  for (std::size_t i = 1; i < chain.size(); ++i) {
    EXPECT_TRUE(reach.before(find(graph, chain[i - 1]), find(graph, chain[i]))) << chain[i];
  }
  EXPECT_TRUE(run_together(graph, "R0.head.gather", "D0.head.proj"));
  EXPECT_TRUE(run_together(graph, "W0.head.proj", "D0.head.gather"));
  EXPECT_EQ(kept_after_each(graph, anatomy, [](const Node&) { return Load{.tokens = 8}; }).back(),
            0);
}

std::vector<Part> parts_of(const config::ModelConfig& model, Piece piece, int layer) {
  for (const block::Block& block : derive::layer_blocks(model, layer)) {
    if (block.piece == piece) return block.parts;
  }
  return {};
}

TEST(TensorParallel, OneRankHasTheSamePartsWithoutExchanges) {
  config::ModelConfig model = model_of("d", 1);
  using enum Part;
  EXPECT_EQ(parts_of(model, Piece::Attention, 0), (std::vector{Norm, Qkv, Core, Proj, Add}));
  model.tensor_model_parallel_size = 2;
  EXPECT_EQ(parts_of(model, Piece::Mlp, 0),
            (std::vector{Norm, Gather, Fc1, Act, Fc2, Scatter, Add}));
  const block::Block shared =
      block::shared_experts(derive::stream_of(model), {.width = 8}, block::SharedGate::Learned);
  EXPECT_EQ(shared.parts, (std::vector{Gather, Fc1, Fc2, Scatter, Gate}));
}

}  // namespace tensor_parallel_test
}  // namespace weft::schedule
