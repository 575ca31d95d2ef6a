#include "weft/schedule/passes/interleave.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"

namespace weft::schedule {
namespace interleave_test {

Graph graph_of(bool narrow, bool delay) {
  return plans_of({.layers = "mmm",
                   .dp = 2,
                   .micro_batches = 2,
                   .overlap = true,
                   .delay = delay,
                   .narrow = narrow})[0]
      .training;
}

// Forward of micro-batch 1 and backward of micro-batch 0, both in layer 1.
TEST(Interleave, DispatchesTravelBesideExpertsAndCombinesBesideAttention) {
  const Graph graph = graph_of(false, false);
  EXPECT_TRUE(run_together(graph, "1F1.dispatch", "1D0.experts"));
  EXPECT_TRUE(run_together(graph, "1D0.dispatch", "1F1.experts"));
  EXPECT_TRUE(run_together(graph, "1F1.combine", "1D0.attention"));
  EXPECT_TRUE(run_together(graph, "0D0.combine", "2F1.attention"));
  EXPECT_FALSE(run_together(graph, "1F1.dispatch", "1D0.attention"));
  EXPECT_FALSE(run_together(graph, "1D0.dispatch", "1F1.attention"));
}

TEST(Interleave, TheOtherWayRoundWhereAttentionOutweighsTheExperts) {
  const Graph graph = graph_of(true, false);
  EXPECT_TRUE(run_together(graph, "1D0.dispatch", "1F1.attention"));
  EXPECT_TRUE(run_together(graph, "1F1.dispatch", "1D0.attention"));
  EXPECT_TRUE(run_together(graph, "0D0.combine", "1F1.experts"));
  EXPECT_TRUE(run_together(graph, "1F1.combine", "0D0.experts"));
  EXPECT_FALSE(run_together(graph, "1F1.dispatch", "1D0.experts"));
  EXPECT_FALSE(run_together(graph, "1D0.dispatch", "1F1.experts"));
}

// The first pair has no forward combine to wait for.
TEST(Interleave, TheFirstCombineTravelsBesideTheFirstAttention) {
  for (const bool narrow : {false, true}) {
    EXPECT_TRUE(run_together(graph_of(narrow, false), "2D0.combine", "0F1.attention")) << narrow;
  }
}

TEST(Interleave, LateWeightGradientsRunWhileCombinesTravel) {
  for (const bool narrow : {false, true}) {
    const Graph graph = graph_of(narrow, true);
    EXPECT_TRUE(run_together(graph, "0D0.combine", "1W0.attention")) << narrow;
  }
  // Inputs of the second combine on the wire come before them.
  const Graph graph = graph_of(true, true);
  EXPECT_LT(find(graph, "1F1.combine"), find(graph, "1W0.attention"));
  EXPECT_LT(find(graph, "1W0.attention"), find(graph, "0D0.experts"));
}

TEST(Interleave, FlopsSayWhichOutweighs) {
  config::ModelConfig model = config_of({.layers = "mm"}).model;
  model.moe_ffn_hidden_size = 1024;
  EXPECT_EQ(dispatch_beside(model), DispatchBeside::Experts);
  model.seq_length *= 4096;  // attention grows with the sequence
  EXPECT_EQ(dispatch_beside(model), DispatchBeside::Attention);
}

}  // namespace interleave_test
}  // namespace weft::schedule
