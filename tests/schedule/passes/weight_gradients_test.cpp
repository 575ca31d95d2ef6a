#include "weft/schedule/passes/weight_gradients.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/derive/derived.h"

namespace weft::schedule {
namespace weight_gradients_test {

// Two layers in the interleaved order, with experts of this width.
RankPlan plan_with_experts(std::int64_t width) {
  config::Config config =
      config_of({.layers = "mm", .dp = 2, .micro_batches = 3, .overlap = true, .delay = true});
  config.model.moe_ffn_hidden_size = width;
  return plan_step(config,
                   grid::Grid(derive::layout_of(config)),
                   config::RowBudget::AsConfigured,
                   {})
      .front();
}

// Which exchange of the layer before stands last in front of attention's weight gradients.
std::string exchange_before(const Graph& graph, const std::string& weights) {
  const std::string text = print(graph);
  const std::size_t end = text.find(" " + weights);
  EXPECT_NE(end, std::string::npos) << weights;
  const std::size_t combine = text.rfind("0D1.combine", end);
  const std::size_t dispatch = text.rfind("ep       0D1.dispatch", end);
  EXPECT_NE(combine, std::string::npos);
  return dispatch == std::string::npos ? "combine" : "dispatch";
}

TEST(WeightGradients, RunBesideTheExchangeThatHasLessToRunBesideIt) {
  const RankPlan wide = plan_with_experts(1024), narrow = plan_with_experts(8);
  EXPECT_EQ(exchange_before(wide.training, "1W1.attention"), "combine");
  EXPECT_EQ(exchange_before(narrow.training, "1W1.attention"), "dispatch");
}

TEST(WeightGradients, CoverTheDispatchWhereAttentionOutweighsTheExperts) {
  config::ModelConfig model = config_of({.layers = "mm"}).model;
  model.moe_ffn_hidden_size = 1024;
  EXPECT_EQ(least_covered(model, 0), Place::Combine);
  model.seq_length *= 4096;  // attention grows with the sequence
  EXPECT_EQ(least_covered(model, 0), Place::Dispatch);
}

}  // namespace weight_gradients_test
}  // namespace weft::schedule
