// A kept search equals the original, and answers only its own question.
#include "weft/plan/search/kept_search.h"

#include <gtest/gtest.h>

namespace weft::plan {
namespace kept_search_test {

PricedLayout layout_of(const LayoutChoice& choice, double ms) {
  PricedLayout layout{.choice = choice, .price = {}, .is_counted = true};
  layout.price.step_ms = ms;
  layout.price.exposed.update = 0.1;
  layout.price.wall = Wall::Host;
  layout.price.memory.pp_rank = 3;
  layout.price.memory.host_capacity = 1.0 / 3;
  return layout;
}

KeptSearch some_search() {
  KeptSearch kept;
  const PricedLayout best = layout_of({.tp = 2,
                                       .ep = 8,
                                       .carrier = Carrier::HybridEp,
                                       .order = StepOrder::MergedDelayed,
                                       .recompute = 1,
                                       .graphs = Graphs::Whole,
                                       .number = DType::MXFP8},
                                      1234.5678901234567);
  kept.top = 2;
  kept.search.shapes = 12;
  kept.search.ranked = {best, layout_of({.ep = 4}, 2000)};
  kept.search.front = {best};
  kept.search.discarded = {
      {.why = "too large", .layouts = 7, .nearest = best.choice, .lack = "3 GiB"},
      {.why = "no multiple", .layouts = 2}};
  kept.search.refusals = {"rule X"};
  kept.search.best_of_order[1] = best;
  kept.search.best_safe = kept.search.ranked[1];
  kept.steps = {{.knob = "tp", .from = "2", .to = "1", .price = best.price, .more_bytes = 2.5},
                {.knob = "pp", .from = "1", .to = "2", .why_not = "no"}};
  kept.verdicts = {{.question = "Does it?", .pays = true, .gain = 0.25, .because = "so"}};
  kept.ways = {{.change = "more", .layout = best, .said = "tp 2"}};
  return kept;
}

TEST(KeptSearch, ComesBackAsItWas) {
  const base::Json written = to_json(some_search());
  const std::optional<KeptSearch> read = kept_search(base::parse_json(written.dump()));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), written);
  EXPECT_EQ(read->top, 2u);
  EXPECT_EQ(read->search.ranked[0].choice, some_search().search.ranked[0].choice);
  EXPECT_EQ(read->search.ranked[0].price.step_ms, 1234.5678901234567) << "to the last bit";
  EXPECT_EQ(read->search.ranked[0].price.wall, Wall::Host);
  EXPECT_FALSE(read->search.best_of_order[0]);
  EXPECT_EQ(read->search.best_safe->choice.ep, 4);
}

TEST(KeptSearch, WhatIsNoneIsNone) {
  for (const char* text : {"{}", "[]", R"({"shapes":"many"})", "3"}) {
    EXPECT_FALSE(kept_search(base::parse_json(text))) << text;
  }
  base::Json cut = to_json(some_search());
  cut["ranked"][0][0].erase(3);
  EXPECT_FALSE(kept_search(cut));
}

// Fields of a layout, in order: tp, pp, vpp, cp, ep, etp, mbs, carrier, order, state, recompute,
// offload, host_state, graphs, number. Wall is field 17 of its price.
TEST(KeptSearch, AValueThatNoSearchHasIsNone) {
  const base::Json good = to_json(some_search());
  const auto is_read = [&](std::size_t part, std::size_t field, std::int64_t value) {
    base::Json json = good;
    json["ranked"][0][part][field] = value;
    return kept_search(json).has_value();
  };
  EXPECT_TRUE(is_read(0, 7, 3));
  EXPECT_TRUE(is_read(1, 17, 6));
  for (const std::size_t field : {7u, 8u, 9u, 13u}) {
    EXPECT_FALSE(is_read(0, field, 4)) << field;
    EXPECT_FALSE(is_read(0, field, -1)) << field;
  }
  for (const std::size_t field : {0u, 1u, 2u, 3u, 4u, 5u, 6u}) {
    EXPECT_FALSE(is_read(0, field, 0)) << field;
  }
  for (const std::size_t field : {10u, 11u, 12u}) EXPECT_FALSE(is_read(0, field, -1)) << field;
  EXPECT_FALSE(is_read(0, 12, 5)) << "quarters of the state";
  EXPECT_FALSE(is_read(0, 14, 5)) << "a number";
  EXPECT_FALSE(is_read(0, 7, std::int64_t{1} << 32)) << "it does not wrap";
  EXPECT_FALSE(is_read(1, 17, 7)) << "a wall";
}

TEST(KeptSearch, ALayoutOfNoRungOrShapeIsNotOfTheQuestion) {
  PlanAsk ask;
  ask.start.runtime.world_size = 4;
  ask.hardware = find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", "h100");
  const LayoutSpace space(ask);
  ASSERT_FALSE(space.shapes().all.empty());
  KeptSearch kept;
  kept.search.ranked = {layout_of(space.shapes().all.front(), 1)};
  EXPECT_TRUE(is_part_of(space, kept));
  const auto with = [&](const auto& change) {
    KeptSearch other = kept;
    change(other.search.ranked.front().choice);
    return is_part_of(space, other);
  };
  EXPECT_FALSE(with([](LayoutChoice& choice) { choice.recompute = 1000; }));
  EXPECT_FALSE(with([](LayoutChoice& choice) { choice.offload = 1000; }));
  EXPECT_FALSE(with([](LayoutChoice& choice) { choice.tp = 7; }));
  kept.search.nearest = layout_of(kept.search.ranked.front().choice, 1);
  kept.search.nearest->choice.recompute = 1000;
  EXPECT_FALSE(is_part_of(space, kept));
}

TEST(KeptSearch, EveryPartOfTheQuestionCounts) {
  PlanAsk ask;
  ask.start.runtime.world_size = 16;
  ask.hardware = find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", "h100");
  const std::string question = question_text(ask, {});
  EXPECT_EQ(question_text(ask, {}), question);
  const auto changed = [&](const auto& change) {
    PlanAsk other = ask;
    change(other);
    return question_text(other, {}) != question;
  };
  EXPECT_TRUE(changed([](PlanAsk& other) { other.start.model.hidden_size *= 2; }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.pinned.insert("model.seq_length"); }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.hardware.nic_gbps += 1; }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.hardware.launch_us *= 1.0000001; }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.routing.imbalance = 1.5; }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.numbers = {DType::F8E4M3}; }));
  EXPECT_TRUE(changed([](PlanAsk& other) { other.is_safe = true; }));
}

}  // namespace kept_search_test
}  // namespace weft::plan
