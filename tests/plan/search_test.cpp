// Layout search: results are legal, fit, and are the best.
#include "weft/plan/search/search.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/plan/search_support.h"
#include "tests/soak.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/memory/ways_to_fit.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/sensitivity.h"
#include "weft/plan/search/plan_verdicts.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace search_test {

SearchResult search(const PlanAsk& ask, int threads = 2) {
  return search_layouts(LayoutSpace(ask), 10, threads, {});
}

// Fewer axes and GPUs, for tests that search repeatedly or check every layout.
PlanAsk narrow_ask(std::int64_t gpus = 8) {
  PlanAsk ask = small_ask();
  ask.start.runtime.world_size = gpus;
  ask.start.model.expert_tensor_parallel_size = 1;
  ask.start.model.context_parallel_size = 1;
  ask.pinned = {"model.expert_tensor_parallel_size", "model.context_parallel_size"};
  return ask;
}

// Searches shared by several tests.
const SearchResult& small_search() {
  static const SearchResult result = search(small_ask());
  return result;
}

const SearchResult& narrow_search() {
  static const SearchResult result = search(narrow_ask(), 3);
  return result;
}

// Every shape with every compatible mode.
std::vector<LayoutChoice> all_choices(const LayoutSpace& space) {
  std::vector<LayoutChoice> all;
  for (const LayoutChoice& shape : space.shapes().all) {
    for (const Carrier carrier : space.carriers_of(shape)) {
      for (const StepOrder order : space.orders_of(shape)) {
        for (const StateHolder state : space.axes().states) {
          for (std::size_t rung = 0; rung < space.writer().ladder().size(); ++rung) {
            if (!space.order_allows(order, rung)) continue;
            LayoutChoice choice = shape;
            choice.carrier = carrier;
            choice.order = order;
            choice.state = state;
            choice.recompute = rung;
            all.push_back(choice);
          }
        }
      }
    }
  }
  return all;
}

TEST(LayoutSpace, WhatDivisionsAllowTheRulesAllow) {
  const LayoutSpace space(small_ask());
  const std::vector<LayoutChoice> all = all_choices(space);
  ASSERT_GT(all.size(), 1000u);
  // A prime stride visits every value of every axis.
  std::size_t looked = 0;
  for (std::size_t i = 0; i < all.size(); i += few_or_many<std::size_t>(113, 37)) {
    EXPECT_EQ(refusal_of(space, all[i]), "") << to_text(all[i], space.writer());
    ++looked;
  }
  EXPECT_GT(looked, few_or_many(30u, 100u));
}

TEST(LayoutSpace, APinnedKeyIsKept) {
  PlanAsk ask = small_ask();
  ask.start.model.expert_model_parallel_size = 8;
  ask.start.model.recompute_granularity = config::RecomputeGranularity::Selective;
  ask.start.model.recompute_modules = {{config::RecomputeModule::MoeAct}};
  ask.start.model.moe_token_dispatcher_type = config::Dispatcher::AllToAll;
  ask.pinned = {"model.expert_model_parallel_size",
                "model.recompute_modules",
                "model.moe_token_dispatcher_type"};
  const LayoutSpace space(ask);
  const SearchResult result = search(ask);
  ASSERT_GT(result.ranked.size(), 3u);
  for (const PricedLayout& layout : result.ranked) {
    const config::ModelConfig model = space.writer().config_of(layout.choice).model;
    EXPECT_EQ(model.expert_model_parallel_size, 8);
    EXPECT_EQ(model.recompute_modules, ask.start.model.recompute_modules);
    EXPECT_EQ(model.moe_token_dispatcher_type, config::Dispatcher::AllToAll);
  }
}

TEST(Search, NoLayoutIsFasterThanTheBest) {
  PlanAsk ask = narrow_ask();
  ask.hardware.memory_gb = 30;  // memory decides too
  const LayoutSpace space(ask);
  const SearchResult result = search(ask);
  ASSERT_FALSE(result.ranked.empty());
  ASSERT_FALSE(result.discarded.empty());
  const PricedLayout& best = result.ranked.front();
  EXPECT_TRUE(best.price.memory.fits());
  bool some_does_not_fit = false;
  int looked = 0;
  for (const LayoutChoice& choice : all_choices(space)) {
    const config::Config config = space.writer().config_of(choice);
    if (!price_memory(config, ask.hardware, {}, space.book()).fits()) {
      some_does_not_fit = true;
      continue;
    }
    // The formula is closer to the price than this (see below).
    const double sieved = sieve_step(config, ask.hardware, {}, space.sieve()).step_ms;
    if (sieved > 1.4 * best.price.step_ms) continue;
    ++looked;
    EXPECT_GE(price_step(config, ask.hardware).step_ms, best.price.step_ms / (1 + kTie))
        << to_text(choice, space.writer());
  }
  EXPECT_TRUE(some_does_not_fit);
  EXPECT_GT(looked, 5);
}

// The formula decides which layouts are not simulated, so its error must be small.
TEST(Search, TheFormulaIsNearTheSimulatedPrice) {
  const LayoutSpace space(small_ask());
  const std::vector<LayoutChoice> all = all_choices(space);
  double sum = 0, looked = 0, worst = 0;
  for (std::size_t i = 0; i < all.size(); i += few_or_many<std::size_t>(919, 307)) {
    const config::Config config = space.writer().config_of(all[i]);
    const double ratio =
        sieve_step(config, space.hardware()).step_ms / price_step(config, space.hardware()).step_ms;
    sum += std::abs(ratio - 1);
    ++looked;
    EXPECT_NEAR(ratio, 1, 0.25) << to_text(all[i], space.writer());
    worst = std::max(worst, std::abs(ratio - 1));
  }
  EXPECT_GT(looked, few_or_many(6, 20));
  EXPECT_LT(sum / looked, 0.05);
  RecordProperty("worst", std::to_string(worst));
}

// Few and many micro-batches, unequal stages, recomputed layers, chunks, merged turns.
TEST(Search, TheBubbleOfTheFormulaIsThatOfTheClock) {
  const LayoutSpace space(small_ask());
  const std::size_t full = space.writer().ladder().size() - 1;
  const std::vector<LayoutChoice> layouts{
      {.pp = 4, .cp = 2, .mbs = 16, .recompute = full},
      {.pp = 4, .cp = 2, .mbs = 1, .recompute = full},
      {.pp = 4, .mbs = 16},
      {.pp = 4, .mbs = 4},
      {.pp = 4, .mbs = 1},
      {.pp = 8, .mbs = 8},
      {.pp = 8, .mbs = 1},
      {.pp = 4, .vpp = 3, .mbs = 1},
      {.pp = 4, .vpp = 2, .mbs = 4},
      {.pp = 2, .vpp = 3, .ep = 8, .mbs = 1, .order = StepOrder::Merged},
      {.pp = 4, .vpp = 3, .ep = 4, .mbs = 4, .order = StepOrder::Merged}};
  for (const LayoutChoice& layout : layouts) {
    const config::Config config = space.writer().config_of(layout);
    const Price formula = sieve_step(config, space.hardware());
    const Price clock = price_step(config, space.hardware());
    EXPECT_NEAR(formula.step_ms / clock.step_ms, 1, 0.08) << to_text(layout, space.writer());
    // Relative to the step: the bubble itself may be almost 0.
    EXPECT_NEAR(formula.bubble, clock.bubble, 0.04) << to_text(layout, space.writer());
  }
}

TEST(Search, WhatIsRankedIsLegalFitsAndPricedAsItIs) {
  const PlanAsk ask = small_ask();
  const LayoutSpace space(ask);
  const SearchResult& result = small_search();
  ASSERT_EQ(result.ranked.size(), 10u);
  std::set<LayoutChoice> seen;
  double before = 0;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const PricedLayout& layout = result.ranked[i];
    const config::Config config = space.writer().config_of(layout.choice);
    const rules::Verdict verdict = rules::judge(config);
    EXPECT_TRUE(verdict.legal());
    // Automatic settings of the rules do not change the price.
    EXPECT_EQ(price_run(verdict.config, ask.hardware).step_ms, layout.price.step_ms);
    EXPECT_GE((1 + kTie) * layout.price.step_ms, before);
    before = std::max(before, layout.price.step_ms);
    EXPECT_TRUE(seen.insert(layout.choice).second);
  }
}

TEST(Search, TheBestSafeLayoutIsLegalAndSafe) {
  const LayoutSpace space(small_ask());
  const SearchResult& result = small_search();
  ASSERT_TRUE(result.best_safe);
  EXPECT_TRUE(is_safe(*result.best_safe));
  EXPECT_EQ(refusal_of(space, result.best_safe->choice), "");
  EXPECT_GE(result.best_safe->price.step_ms * (1 + kTie), result.ranked.front().price.step_ms);
}

// The host's AdamW has Weft's price, and others are slower: it is a last resort.
TEST(Search, TheOptimizerIsNotOnTheHostWhereSomethingElseFits) {
  PlanAsk ask = narrow_ask();
  ask.hardware.memory_gb = 20;
  const SearchResult result = search(ask);
  ASSERT_TRUE(result.best_resident);
  for (const PricedLayout& layout : result.ranked) EXPECT_EQ(layout.choice.host_state, 0u);
}

// The verdict is not about another layout that is marginally faster.
TEST(PlanVerdicts, AreAboutPlaceOne) {
  const LayoutSpace space(small_ask());
  SearchResult result = small_search();
  const PricedLayout best = result.ranked.front();
  PricedLayout tied = best;
  tied.choice.etp = 2;
  tied.price.step_ms *= 0.995;
  const auto order = static_cast<std::size_t>(best.choice.order);
  result.best_of_order[order] = tied;
  if (is_offloading(best.choice)) result.best_offloading = tied;
  for (const PlanVerdict& verdict : plan_verdicts(space, result)) {
    EXPECT_EQ(verdict.because.find(time_text(tied.price.step_ms)), std::string::npos)
        << verdict.question << " " << verdict.because;
  }
}

TEST(Search, TheFrontIsFasterOrSmallerPointByPoint) {
  const SearchResult& result = narrow_search();
  ASSERT_GT(result.front.size(), 2u);
  EXPECT_LE(result.front.front().price.step_ms, result.ranked.front().price.step_ms);
  EXPECT_GE((1 + kTie) * result.front.front().price.step_ms, result.ranked.front().price.step_ms);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    const Price &one = result.front[i - 1].price, &next = result.front[i].price;
    EXPECT_LE(one.step_ms, next.step_ms);
    EXPECT_GT(one.memory.total(), next.memory.total());
  }
}

TEST(Search, WhereNoShapeIsPossibleTheRulesSayWhy) {
  PlanAsk ask = small_ask();
  ask.start.model.expert_model_parallel_size = 3;
  ask.pinned = {"model.expert_model_parallel_size"};
  const SearchResult result = search(ask);
  EXPECT_EQ(result.shapes, 0);
  ASSERT_FALSE(result.refusals.empty());
  EXPECT_NE(result.refusals.back().find("16 experts cannot be shared equally by ep = 3"),
            std::string::npos)
      << result.refusals.back();
}

// cp = 2 doubles attention kernels and adds partial outputs.
TEST(Search, SequencesThatRanksShareForNothingCostTime) {
  const LayoutSpace space(small_ask());
  const auto step = [&](const LayoutChoice& choice) {
    return price_step(space.writer().config_of(choice), space.hardware()).step_ms;
  };
  EXPECT_GT(step({.cp = 2, .ep = 8, .mbs = 2}), 1.002 * step({.ep = 8, .mbs = 1}));
}

TEST(Search, IsTheSameOnAnyNumberOfThreads) {
  const SearchResult one = search(narrow_ask(), 1);
  const SearchResult& three = narrow_search();
  ASSERT_EQ(one.ranked.size(), three.ranked.size());
  for (std::size_t i = 0; i < one.ranked.size(); ++i) {
    EXPECT_EQ(one.ranked[i].choice, three.ranked[i].choice);
    EXPECT_EQ(one.ranked[i].price.step_ms, three.ranked[i].price.step_ms);
  }
  EXPECT_EQ(one.discarded.size(), three.discarded.size());
}

TEST(Search, EndsWhenItIsTold) {
  std::atomic<bool> stop = false;
  std::int64_t shown = 0;
  const SearchWatch watch{.show =
                              [&](std::string_view, std::int64_t done, std::int64_t) {
                                shown = done;
                                stop = true;
                              },
                          .stop = &stop};
  EXPECT_THROW(search_layouts(LayoutSpace(small_ask()), 10, 2, watch), SearchStopped);
  EXPECT_GT(shown, 0);
}

TEST(Search, SeveralFormatsAreSearchedAndUnevenRoutingCosts) {
  PlanAsk ask = narrow_ask();
  ask.start.model.expert_model_parallel_size = 8;
  ask.start.train.micro_batch_size = 1;
  ask.pinned.insert("model.expert_model_parallel_size");
  ask.pinned.insert("train.micro_batch_size");
  const double even = search(ask).ranked.front().price.step_ms;
  ask.numbers = {DType::BF16, DType::F8E4M3};
  const PricedLayout faster = search(ask).ranked.front();
  EXPECT_EQ(faster.choice.number, DType::F8E4M3);
  EXPECT_LT(faster.price.step_ms, even);
  ask.numbers.clear();
  ask.routing.skew = 0.5;
  EXPECT_GT(search(ask).ranked.front().price.step_ms, 1.02 * even);
}

TEST(Sensitivity, EveryStepIsTheLayoutWithOneKnobTurned) {
  const LayoutSpace space(small_ask());
  const PricedLayout& best = small_search().ranked.front();
  std::set<std::string> knobs;
  for (const KnobStep& step : sensitivity(space, best.choice)) {
    knobs.insert(step.knob);
    EXPECT_NE(step.from, step.to);
    EXPECT_EQ(step.price.has_value(), step.why_not.empty()) << step.knob;
    const bool searched = step.knob != "gbs" && step.knob != "precision" && step.knob != "graphs";
    if (step.price && searched) {
      EXPECT_GE((1 + kTie) * step.price->step_ms, best.price.step_ms) << step.knob;
    }
  }
  for (const char* knob : {"tp",
                           "pp",
                           "ep",
                           "mbs",
                           "recompute",
                           "optimizer",
                           "offload",
                           "host state",
                           "gbs",
                           "precision"}) {
    EXPECT_TRUE(knobs.contains(knob)) << knob;
  }
}

TEST(PlanVerdicts, SayWhatTheirNumbersSay) {
  PlanAsk ask = small_ask();
  ask.start.model.expert_model_parallel_size = 16;
  ask.pinned = {"model.expert_model_parallel_size"};
  const LayoutSpace space(ask);
  const SearchResult result = search(ask);
  const std::vector<PlanVerdict> verdicts = plan_verdicts(space, result);
  ASSERT_GE(verdicts.size(), 3u);
  const PricedLayout& best = result.ranked.front();
  ASSERT_NE(best.choice.order, StepOrder::Plain);
  EXPECT_TRUE(verdicts[0].because.starts_with(time_text(best.price.step_ms) + " with it"))
      << verdicts[0].because;
  for (const PlanVerdict& verdict : verdicts) EXPECT_EQ(verdict.pays, verdict.gain > kTie);
  EXPECT_FALSE(verdicts[2].pays) << "whole layers again where everything fits";
}

TEST(WaysToFit, MoreGpusOrLargerOnesHelpAModelThatFitsNowhere) {
  PlanAsk ask = narrow_ask();
  ask.hardware.memory_gb = 7;
  ask.hardware.reserved_gb = 5;
  const SearchResult result = search(ask);
  ASSERT_TRUE(result.ranked.empty());
  ASSERT_TRUE(result.nearest);
  EXPECT_GT(result.nearest->price.memory.total(), 7e9);
  const std::vector<FitWay> ways = ways_to_fit(ask, {find_hardware(kHardware, "h200")});
  ASSERT_FALSE(ways.empty());
  for (const FitWay& way : ways) EXPECT_TRUE(way.layout.price.memory.fits()) << way.change;
  EXPECT_EQ(ways.back().change, "h200 instead of h100");
}

// GPU too small for any layout, even with recomputation.
PlanAsk tight_ask() {
  PlanAsk ask = narrow_ask(16);
  ask.hardware.memory_gb = 8.4;
  ask.hardware.reserved_gb = 4;
  return ask;
}

TEST(Offloading, FindsWhatFitsOnlyWithTheHost) {
  PlanAsk ask = tight_ask();
  const SearchResult result = search(ask);
  EXPECT_EQ(result.fitting, 0);
  ASSERT_FALSE(result.ranked.empty());
  ASSERT_TRUE(result.best_offloading);
  EXPECT_FALSE(result.best_resident);
  const LayoutSpace space(ask);
  for (const PricedLayout& layout : result.ranked) {
    EXPECT_TRUE(layout.price.memory.fits());
    EXPECT_GT(layout.price.memory.host, 0);
    EXPECT_TRUE(rules::judge(space.writer().config_of(layout.choice)).legal());
    const config::Config config = space.writer().config_of(layout.choice);
    EXPECT_TRUE(config.optimizer.optimizer_cpu_offload ||
                config.model.fine_grained_activation_offloading);
  }
  EXPECT_EQ(plan_verdicts(space, result).back().question, "Does offloading to the host pay here?");
  // Without host memory, or if the question forbids it, no layout is left.
  ask.hardware.host_memory_gb = 0.1;
  const SearchResult none = search(ask);
  EXPECT_TRUE(none.ranked.empty());
  const std::vector<FitWay> ways = ways_to_fit(ask, {});
  ASSERT_FALSE(ways.empty());
  const auto asks_for = [&](const char* words) {
    return std::ranges::any_of(ways, [&](const FitWay& way) {
      return way.layout.price.memory.fits() && way.change.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(asks_for("GiB of host memory a GPU")) << ways.front().change;
  EXPECT_TRUE(asks_for("optimizer.exp_avg_dtype=bf16")) << ways.front().change;
  ask = tight_ask();
  ask.pinned.insert("optimizer.optimizer_cpu_offload");
  ask.pinned.insert("model.offload_modules");
  EXPECT_TRUE(search(ask).ranked.empty());
  EXPECT_NE(ways_to_fit(ask, {}).front().change.find("offloading to the host"), std::string::npos);
}

// GPUs of several sizes: on some, recomputation or offload is necessary.
TEST(Offloading, BeatsRecomputationWhereTheLinkCarriesIt) {
  PlanAsk ask = narrow_ask();
  bool beats = false;
  for (const double memory_gb : {20.0, 20.2, 20.5, 21.0, 22.0}) {
    ask.hardware.memory_gb = memory_gb;
    ask.hardware.host_link_gbps = 450;
    ask.start.hardware.gpu = config::Gpu::Gb200;  // its link decides the number of offloaded layers
    ask.start.hardware.device_name = "NVIDIA GB200";
    const SearchResult fast = search(ask);
    if (!fast.best_offloading) continue;
    ASSERT_TRUE(fast.best_resident);
    beats = fast.best_offloading->price.step_ms < fast.best_resident->price.step_ms &&
            is_offloading(fast.ranked.front().choice);
    if (beats) break;
  }
  EXPECT_TRUE(beats);
}

TEST(Offloading, HostStateCostsWhatTheHostsMemoryTakes) {
  const PlanAsk ask = small_ask();
  const LayoutSpace space(ask);
  LayoutChoice choice{.ep = 8, .carrier = Carrier::DeepEp};
  const Price none = price_run(space.writer().config_of(choice), ask.hardware);
  double before = none.step_ms, optimizer = none.memory.optimizer;
  for (choice.host_state = 1; choice.host_state <= kStateQuarters; ++choice.host_state) {
    const Price price = price_run(space.writer().config_of(choice), ask.hardware);
    EXPECT_GT(price.step_ms, before);
    EXPECT_NEAR(optimizer - price.memory.optimizer, none.memory.optimizer / 4, 1e3);
    EXPECT_GT(price.memory.host, 0);
    before = price.step_ms;
    optimizer = price.memory.optimizer;
  }
  // Complete offload: 30 bytes of host memory per parameter; the six over the link overlap with
  // them.
  const double parameters = none.memory.optimizer / 12;
  const Price all =
      price_run(space.writer().config_of({.ep = 8, .carrier = Carrier::DeepEp, .host_state = 4}),
                ask.hardware);
  EXPECT_NEAR(all.exposed.update, parameters * 30 / ask.hardware.host_memory_rate() * 1e3, 25);
}

}  // namespace search_test
}  // namespace weft::plan
