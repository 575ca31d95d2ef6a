// Layout as keys and words, and the order of tied layouts.
#include "weft/plan/search/layout_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/search_support.h"
#include "weft/plan/search/layout_ties.h"

namespace weft::plan {
namespace layout_keys_test {

TEST(LayoutKeys, OverridesNameWhatIsOnTheHost) {
  const LayoutSpace space(small_ask());
  const LayoutChoice choice{.ep = 8, .offload = 1, .host_state = 2};
  const std::vector<std::string> words = layout_overrides(space.writer().config_of(choice));
  for (const char* word : {"model.fine_grained_activation_offloading=true",
                           "'model.offload_modules=[core_attn,attn_proj]'",
                           "optimizer.optimizer_cpu_offload=true",
                           "optimizer.optimizer_offload_fraction=0.5",
                           "optimizer.overlap_cpu_optimizer_d2h_h2d=true",
                           "optimizer.use_precision_aware_optimizer=true"}) {
    EXPECT_NE(std::ranges::find(words, word), words.end()) << word;
  }
}

// The recipe in front of the overrides may have it on.
TEST(LayoutKeys, OverridesAlsoSayWhatIsOff) {
  const LayoutSpace space(small_ask());
  const std::vector<std::string> words =
      layout_overrides(space.writer().config_of({.pp = 2, .vpp = 3, .ep = 8}));
  for (const char* word : {"model.account_for_embedding_in_pipeline_split=false",
                           "model.account_for_loss_in_pipeline_split=false",
                           "model.num_layers_in_first_pipeline_stage=null",
                           "model.recompute_granularity=null",
                           "model.fine_grained_activation_offloading=false",
                           "optimizer.optimizer_cpu_offload=false",
                           "optimizer.use_precision_aware_optimizer=false"}) {
    EXPECT_NE(std::ranges::find(words, word), words.end()) << word;
  }
  const std::vector<std::string> alone = layout_overrides(space.writer().config_of({.ep = 8}));
  EXPECT_NE(std::ranges::find(alone, "model.pipeline_model_parallel_layout=null"), alone.end());
}

TEST(LayoutKeys, ADifferenceNamesWhatDiffersAndNothingElse) {
  const LayoutSpace space(small_ask());
  const LayoutChoice from{.pp = 2,
                          .ep = 8,
                          .order = StepOrder::MergedDelayed,
                          .graphs = Graphs::Scoped};
  LayoutChoice of = from;
  EXPECT_EQ(difference_text(of, from, space.writer()), "");
  of.vpp = 3;
  of.order = StepOrder::Merged;
  of.recompute = 1;
  of.graphs = Graphs::None;
  EXPECT_EQ(difference_text(of, from, space.writer()),
            "vpp 3, no delayed wgrad, recompute moe_act, no graphs");
}

TEST(LayoutKeys, OverridesSetTheKeysAndAShellReadsThem) {
  const LayoutSpace space(small_ask());
  const LayoutChoice choice{.pp = 2,
                            .vpp = 3,
                            .ep = 8,
                            .carrier = Carrier::HybridEp,
                            .order = StepOrder::Merged,
                            .recompute = 1};
  const std::vector<std::string> words = layout_overrides(space.writer().config_of(choice));
  const auto has = [&](const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  };
  EXPECT_TRUE(has("model.expert_model_parallel_size=8"));
  EXPECT_TRUE(has("model.moe_flex_dispatcher_backend=hybridep"));
  EXPECT_TRUE(has("comm_overlap.overlap_moe_expert_parallel_comm=true"));
  EXPECT_TRUE(has("'model.recompute_modules=[moe_act]'"));
}

PricedLayout priced(const LayoutChoice& choice, double ms, double gb) {
  PricedLayout layout{.choice = choice, .price = {}};
  layout.price.step_ms = ms;
  layout.price.memory.weights = gb * 1e9;
  return layout;
}

TEST(Ties, TheSimplerIsFirstOfThoseThatAPriceDoesNotTellApart) {
  const LayoutSpace space(small_ask());
  const LayoutChoice plain{.ep = 8}, shared{.cp = 2, .ep = 8}, chunks{.pp = 2, .vpp = 2, .ep = 8};
  const LayoutChoice host{.ep = 8, .offload = 1, .host_state = 1}, slow{.tp = 2};
  const std::vector<PricedLayout> order = simpler_first({priced(host, 100, 70),
                                                         priced(shared, 100.1, 60),
                                                         priced(chunks, 100.2, 50),
                                                         priced(plain, 100.8, 55),
                                                         priced(slow, 103, 10)},
                                                        space);
  std::vector<LayoutChoice> choices;
  for (const PricedLayout& layout : order) choices.push_back(layout.choice);
  // With equally many parts, less memory is first; layouts slower by more than a tie come later.
  EXPECT_EQ(choices, (std::vector{plain, shared, chunks, host, slow}));
}

// Overlap may hide the cost of alltoall; hybridep is preferred if NVLink joins machines.
TEST(Ties, OfTiedDispatchersHybridepIsFirstWhereNvlinkJoinsMachines) {
  const PricedLayout plain = priced({.ep = 8, .carrier = Carrier::AllToAll}, 100, 50);
  const PricedLayout hybrid = priced({.ep = 8, .carrier = Carrier::HybridEp}, 100.5, 55);
  const auto first_on = [&](const char* gpu) {
    PlanAsk ask = small_ask();
    ask.hardware = find_hardware(kHardware, gpu);
    return simpler_first({plain, hybrid}, LayoutSpace(ask)).front().choice.carrier;
  };
  EXPECT_EQ(first_on("gb200"), Carrier::HybridEp);
  EXPECT_EQ(first_on("h100"), Carrier::AllToAll);
  PricedLayout slower = hybrid;
  slower.price.step_ms = 103;
  EXPECT_FALSE(are_tied(plain, slower));
  EXPECT_TRUE(are_tied(plain, hybrid));
}

}  // namespace layout_keys_test
}  // namespace weft::plan
