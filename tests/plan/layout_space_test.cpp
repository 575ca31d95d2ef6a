// Possible layouts of a model: divisions and rules, stages, and recomputation.
#include "weft/plan/search/layout_space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/search_support.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/search/search.h"

namespace weft::plan {
namespace layout_space_test {

TEST(LayoutSpace, WhatDivisionsRefuseTheRulesRefuse) {
  const LayoutSpace space(small_ask());
  const std::vector<LayoutChoice> wrong = {{.tp = 3},
                                           {.pp = 5},
                                           {.tp = 8, .cp = 4},
                                           {.ep = 3},
                                           {.ep = 16, .etp = 2},
                                           {.vpp = 2},
                                           {.pp = 2, .vpp = 2, .mbs = 8},
                                           {.mbs = 8}};
  for (const LayoutChoice& shape : wrong) {
    EXPECT_NE(space.complaint(shape), "") << to_text(shape, space.writer());
    EXPECT_NE(refusal_of(space, shape), "") << to_text(shape, space.writer());
  }
}

TEST(BalancedLayout, HoldsEveryLayerAndSparesTheLastStage) {
  config::ModelConfig model = small_ask().start.model;
  model.num_layers = 61;
  model.vocab_size = 129280;
  for (const auto& [pp, vpp] : {std::pair(4, 1), {8, 4}, {16, 2}, {16, 3}, {3, 5}}) {
    model.pipeline_model_parallel_size = pp;
    model.virtual_pipeline_model_parallel_size = vpp;
    model.pipeline_model_parallel_layout =
        balanced_layout(model, pp, pp * vpp, head_in_layers(model));
    const derive::Stages stages = derive::stages_of(model);
    ASSERT_TRUE(stages.complaints.empty()) << stages.complaints.front();
    ASSERT_EQ(std::ssize(stages.all), pp * vpp);
    int most = 0;
    for (const derive::Stage& stage : stages.all) most = std::max(most, stage.layers);
    EXPECT_LT(stages.all.back().layers, most) << model.pipeline_model_parallel_layout;
    EXPECT_LE(most, (61 + pp * vpp - 2) / (pp * vpp - 1) + 1);
  }
}

TEST(RecomputeLadder, EveryRungKeepsLessAndTakesLonger) {
  PlanAsk ask = small_ask();
  ask.start.model.moe_layer_freq = std::vector<std::int64_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const LayoutSpace space(ask);
  LayoutChoice choice{.ep = 8, .carrier = Carrier::DeepEp};
  double memory = 1e30, time = 0;
  for (; choice.recompute < space.writer().ladder().size(); ++choice.recompute) {
    const Price price = price_run(space.writer().config_of(choice), ask.hardware);
    EXPECT_LT(price.memory.total(), memory) << space.writer().ladder()[choice.recompute].name;
    EXPECT_GT(price.step_ms, time) << space.writer().ladder()[choice.recompute].name;
    memory = price.memory.total();
    time = price.step_ms;
  }
}

PlanAsk blackwell_ask() {
  PlanAsk ask = small_ask();
  ask.hardware = find_hardware(kHardware, "gb200");
  ask.start.hardware.gpu = config::Gpu::Gb200;
  set_number(ask.start, DType::MXFP8);
  return ask;
}

TEST(LayoutSpace, AWholeStepIsCapturedWhereRowsHaveABudget) {
  const LayoutSpace space(blackwell_ask());
  const LayoutChoice choice{.ep = 8, .carrier = Carrier::HybridEp, .order = StepOrder::Merged};
  const auto may = [&](const LayoutChoice& of) {
    const std::vector<Graphs> graphs = space.graphs_of(of);
    return std::ranges::find(graphs, Graphs::Whole) != graphs.end();
  };
  EXPECT_TRUE(may(choice));
  LayoutChoice whole = choice, other = choice;
  whole.graphs = Graphs::Whole;
  whole.recompute = 1;  // moe_act, which is inside the fused experts
  EXPECT_EQ(refusal_of(space, whole), "");
  const config::Config config = space.writer().config_of(whole);
  EXPECT_TRUE(config.model.moe_paged_stash && config.model.use_transformer_engine_op_fuser);
  EXPECT_FALSE(config.model.recompute_modules);
  EXPECT_LT(price_run(config, space.hardware()).exposed.host, 1e-3) << "no launches are left";
  other.carrier = Carrier::AllToAll;
  EXPECT_FALSE(may(other)) << "alltoall has the host wait for counts";
  other = choice;
  other.offload = 1;
  EXPECT_FALSE(may(other)) << "the stash keeps those rows";
  PlanAsk wide = blackwell_ask();
  set_number(wide.start, DType::BF16);
  const std::vector<Graphs> graphs = LayoutSpace(wide).graphs_of(choice);
  EXPECT_EQ(std::ranges::find(graphs, Graphs::Whole), graphs.end());
}

// Published runs of Llama 3.1 405B have 126 layers in 128 stages; here 6 in 8.
TEST(LayoutSpace, TheEmbeddingAndTheLossMayHaveStagesOfTheirOwn) {
  PlanAsk ask = small_ask();
  ask.start.model.num_layers = 6;
  const LayoutSpace space(ask);
  for (const LayoutChoice& shape : {LayoutChoice{.pp = 4, .vpp = 2}, {.pp = 8}}) {
    EXPECT_EQ(space.complaint(shape), "");
    EXPECT_EQ(refusal_of(space, shape), "");
    const config::Config config = space.writer().config_of(shape);
    EXPECT_EQ(config.model.pipeline_model_parallel_layout, "E|t|t|t|t|t|t|L");
    EXPECT_GT(price_run(config, ask.hardware).step_ms, 0);
  }
  EXPECT_EQ(space.complaint({.pp = 4, .vpp = 3}), "more stages than layers");
}

}  // namespace layout_space_test
}  // namespace weft::plan
