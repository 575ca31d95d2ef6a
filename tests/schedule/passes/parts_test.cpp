#include "weft/schedule/passes/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/base/error.h"
#include "weft/derive/derived.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/passes/recompute.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace parts_test {

const std::vector<Piece> kAll{Piece::Attention, Piece::Mlp, Piece::Experts};

PlanCase with(PlanCase c, Detail detail) {
  c.detail = std::move(detail);
  return c;
}

std::set<std::string> needs_of(const Anatomy& anatomy, const std::string& node) {
  std::set<std::string> names;
  for (const Node& need : required(anatomy, parse_node(node), 2, StepKind::Training)) {
    names.insert(print(need));
  }
  return names;
}

using Names = std::set<std::string>;

TEST(Parts, StandWhereTheirPieceStood) {
  const Anatomy anatomy = with_parts(describe(model_of("dm", 2), kAlone), kAll);
  EXPECT_EQ(needs_of(anatomy, "0F1.attention.norm"), (Names{"F1.embed"}));
  EXPECT_EQ(needs_of(anatomy, "0F1.attention.core"), (Names{"0F1.attention.qkv"}));
  EXPECT_EQ(needs_of(anatomy, "0F1.mlp.norm"), (Names{"0F1.attention.add"}));
  EXPECT_EQ(needs_of(anatomy, "1F1.attention.norm"), (Names{"0F1.mlp.add"}));
  EXPECT_EQ(needs_of(anatomy, "1F1.combine"), (Names{"1F1.experts.fc2"}));
  EXPECT_EQ(needs_of(anatomy, "0D1.mlp.add"), (Names{"0F1.mlp.add", "1D1.attention.norm"}));
  EXPECT_EQ(needs_of(anatomy, "1D1.attention.add"), (Names{"1F1.attention.add", "1D1.route"}));
  EXPECT_EQ(needs_of(anatomy, "1D1.dispatch"), (Names{"1F1.dispatch", "1D1.experts.arrange"}));
  EXPECT_EQ(needs_of(anatomy, "W1.embed"), (Names{"0D1.attention.norm", "W0.embed"}));
  EXPECT_EQ(needs_of(anatomy, "1W1.experts.fc2"), (Names{"1D1.experts.fc2", "1W0.experts.fc2"}));
}

TEST(Parts, HaveTheBytesOfTheirPiece) {
  for (const bool latent : {false, true}) {
    config::ModelConfig model = model_of("dm", 2);
    model.multi_latent_attention = latent;
    const Anatomy whole = describe(model, kAlone), split = with_parts(whole, kAll);
    const Load load{.tokens = 64, .rows = 130, .copies = 100};
    for (std::size_t layer = 0; layer < whole.layers.size(); ++layer) {
      for (const PieceAnatomy& piece : whole.layers[layer]) {
        std::int64_t kept = 0, output = 0, remade = 0;
        for (const PieceAnatomy& part : split.layers[layer]) {
          if (part.piece != piece.piece || (piece.part != Part::None && part.part != piece.part)) {
            continue;
          }
          kept += part.kept.of(load);
          output += part.output.of(load);
          remade += part.remade.of(load);
        }
        EXPECT_EQ(kept, piece.kept.of(load)) << word(piece.piece);
        EXPECT_EQ(output, piece.output.of(load)) << word(piece.piece);
        EXPECT_EQ(remade, piece.remade.of(load)) << word(piece.piece);
      }
    }
  }
}

TEST(Parts, EveryOrderCanBeSplitAndIsSound) {
  for (const PlanCase& c : some_cases(7, 0)) {
    SCOPED_TRACE(name(c));
    const std::vector<RankPlan> whole = plans_of(c), split = plans_of(with(c, {kAll, {}}));
    EXPECT_EQ(verify_plan(split), std::vector<std::string>());
    for (std::size_t i = 0; i < split.size(); ++i) {
      EXPECT_EQ(print(parse_graph(print(split[i].training))), print(split[i].training));
      const Load load{.tokens = 64, .rows = 130};
      EXPECT_EQ(activation_mark(split[i].training, split[i].anatomy, load),
                activation_mark(whole[i].training, whole[i].anatomy, load));
    }
  }
}

TEST(Parts, RunInThePlaceOfTheirNode) {
  const PlanCase c{.layers = "d", .ep = 1, .dp = 1, .micro_batches = 1};
  EXPECT_EQ(print(plans_of(with(c, {kAll, {}}))[0].training),
            "compute  F0.embed\n"
            "compute  0F0.attention.norm\n"
            "compute  0F0.attention.qkv\n"
            "compute  0F0.attention.core\n"
            "compute  0F0.attention.proj\n"
            "compute  0F0.attention.add\n"
            "compute  0F0.mlp.norm\n"
            "compute  0F0.mlp.fc1\n"
            "compute  0F0.mlp.act\n"
            "compute  0F0.mlp.fc2\n"
            "compute  0F0.mlp.add\n"
            "compute  F0.head\n"
            "compute  D0.head\n"
            "compute  W0.head\n"
            "compute  0D0.mlp.add\n"
            "compute  0D0.mlp.fc2\n"
            "compute  0D0.mlp.act\n"
            "compute  0D0.mlp.fc1\n"
            "compute  0D0.mlp.norm\n"
            "compute  0W0.mlp.fc2\n"
            "compute  0W0.mlp.fc1\n"
            "compute  0W0.mlp.norm\n"
            "compute  0D0.attention.add\n"
            "compute  0D0.attention.proj\n"
            "compute  0D0.attention.core\n"
            "compute  0D0.attention.qkv\n"
            "compute  0D0.attention.norm\n"
            "compute  0W0.attention.proj\n"
            "compute  0W0.attention.qkv\n"
            "compute  0W0.attention.norm\n"
            "compute  W0.embed\n"
            "compute  norm\n"
            "host     clip < norm\n"
            "compute  optimizer\n");
}

TEST(Recompute, ComesBeforeTheFirstGradientThatReadsIt) {
  const Anatomy anatomy = with_recomputation(with_parts(describe(model_of("dm", 2), kAlone), kAll),
                                             std::vector<PieceName>{{Piece::Mlp, Part::Act},
                                                                    {Piece::Attention, Part::Qkv},
                                                                    {Piece::Attention, Part::Core},
                                                                    Piece::Route});
  EXPECT_EQ(needs_of(anatomy, "0R1.mlp.act"), (Names{"0F1.mlp.act", "0F1.mlp.fc2"}));
  EXPECT_EQ(needs_of(anatomy, "0D1.mlp.fc2"), (Names{"0F1.mlp.fc2", "0D1.mlp.add", "0R1.mlp.act"}));
  EXPECT_EQ(needs_of(anatomy, "0R1.attention.core"),
            (Names{"0F1.attention.core", "0F1.attention.proj", "0R1.attention.qkv"}));
  EXPECT_EQ(needs_of(anatomy, "1R1.route"), (Names{"1F1.route", "1F1.counts", "1F1.permute"}));
  EXPECT_EQ(needs_of(anatomy, "1D1.route"),
            (Names{"1F1.route", "1F1.counts", "1D1.permute", "1R1.route"}));
}

TEST(Recompute, EveryOrderCanRecomputeAndKeepsLess) {
  const std::vector<Detail> details{
      {{}, {Piece::Attention}},
      {{}, {Piece::Attention, Piece::Route, Piece::Permute, Piece::Dispatch, Piece::Experts}},
      {kAll, {{Piece::Experts, Part::Act}, {Piece::Attention, Part::Core}}},
      {kAll, {{Piece::Attention, Part::Qkv}, {Piece::Experts, Part::Fc1}, Piece::Route}}};
  std::size_t turn = 0;
  for (const PlanCase& c : some_cases(7, 1)) {
    if (c.cp > 1) continue;  // attention between ranks is not recomputed
    SCOPED_TRACE(name(c));
    const Detail& detail = details[turn++ % details.size()];
    const std::vector<RankPlan> plain = plans_of(c), again = plans_of(with(c, detail));
    EXPECT_EQ(verify_plan(again), std::vector<std::string>());
    for (std::size_t i = 0; i < again.size(); ++i) {
      const std::string text = print(again[i].training);
      EXPECT_EQ(print(parse_graph(text)), text);
      const Load load{.tokens = 64, .rows = 130};
      EXPECT_LE(activation_mark(again[i].training, again[i].anatomy, load),
                activation_mark(plain[i].training, plain[i].anatomy, load));
    }
  }
}

TEST(Recompute, AMissingOrEarlyRecomputationIsCaught) {
  const PlanCase c{.layers = "m", .ep = 2, .dp = 2, .micro_batches = 1};
  const RankPlan plan = plans_of(with(c, {{}, {Piece::Attention}}))[0];
  const std::size_t entry = find(plan.training, "0R0.attention");
  EXPECT_TRUE(
      contains(verify(without_entry(plan.training, entry), plan.anatomy, 1, StepKind::Training),
               "0R0.attention is missing"));
  EXPECT_TRUE(
      contains(verify(with_swapped(plan.training, entry), plan.anatomy, 1, StepKind::Training),
               "0D0.route may start before 0R0.attention is over"));
}

TEST(Recompute, WhatRemakesNothingIsRefused) {
  const Anatomy anatomy = describe(model_of("d", 1), kAlone);
  EXPECT_THROW(with_recomputation(anatomy, std::vector<PieceName>{Piece::Experts}),
               base::ConfigError);
  const Anatomy moe = describe(model_of("m", 1), kAlone);
  EXPECT_THROW(with_recomputation(moe, std::vector<PieceName>{Piece::Merge}), base::ConfigError);
  EXPECT_THROW(with_recomputation(moe, std::vector<PieceName>{Piece::Experts}), base::ConfigError)
      << "their rows would have to travel again";
}

}  // namespace parts_test
}  // namespace weft::schedule
