#include "weft/plan/tuning/perf_vary.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/other_names.h"

namespace weft::plan {
namespace perf_vary_test {

using Words = std::vector<std::string>;

std::string complaint(const Words& words, Sweep sweep = Sweep::OneKnob) {
  try {
    std::vector<Knob> knobs;
    for (const std::string& word : words) knobs.push_back(parse_knob(word));
    variants_of(knobs, sweep);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(PerfVary, SplitsAtTheCommasOutsideBracketsAndQuotes) {
  EXPECT_EQ(split_values("1,2,3"), (Words{"1", "2", "3"}));
  EXPECT_EQ(split_values("[a,b],[c],null"), (Words{"[a,b]", "[c]", "null"}));
  EXPECT_EQ(split_values("'a,b', c"), (Words{"'a,b'", "c"}));
  EXPECT_EQ(split_values(""), (Words{""}));
}

TEST(PerfVary, NamesAKeyAndItsValues) {
  const Knob knob = parse_knob("world=1,2");
  EXPECT_EQ(knob.key, "runtime.world_size");
  EXPECT_EQ(knob.values, (Words{"1", "2"}));
}

TEST(PerfVary, TakesTheShortNamesOfOtherWords) {
  for (const config::ShortName& shorter : config::short_names()) {
    EXPECT_EQ(parse_knob(base::text("{}=1,2", shorter.name)).key, shorter.key);
  }
}

TEST(PerfVary, RefusesWhatIsNoKnob) {
  EXPECT_NE(complaint({"model.num_layers"}).find("a.b=x,y"), std::string::npos);
  EXPECT_NE(complaint({"model.num_layer=1,2"}).find("model.num_layers"), std::string::npos);
  EXPECT_NE(complaint({"model.num_layers=1,,2"}).find("empty"), std::string::npos);
  EXPECT_NE(complaint({"model.num_layers=2,2"}).find("twice"), std::string::npos);
}

TEST(PerfVary, TwoKnobsNeedAGrid) {
  const Words two{"model.num_layers=1,2", "rng.seed=3,4"};
  EXPECT_NE(complaint(two).find("--grid"), std::string::npos);
  EXPECT_EQ(complaint(two, Sweep::Grid), "");
  EXPECT_NE(complaint({two[0], two[0]}, Sweep::Grid).find("twice"), std::string::npos);
}

TEST(PerfVary, AGridIsEveryCombinationTheLastKnobFastest) {
  const auto all =
      variants_of({parse_knob("model.num_layers=1,2"), parse_knob("rng.seed=3,4")}, Sweep::Grid);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].overrides, (Words{"model.num_layers=1", "rng.seed=4"}));
  EXPECT_EQ(all[1].value, "model.num_layers=1 rng.seed=4");
  EXPECT_EQ(all[2].overrides, (Words{"model.num_layers=2", "rng.seed=3"}));
}

TEST(PerfVary, WithoutAKnobThereIsOneRun) {
  const auto all = variants_of({}, Sweep::OneKnob);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].value, kAsConfigured);
  EXPECT_TRUE(all[0].overrides.empty());
}

TEST(PerfVary, MoreRunsThanAnyoneWaitsForAreRefused) {
  std::string word = "rng.seed=0";
  for (int i = 1; i < 65; ++i) word += "," + std::to_string(i);
  EXPECT_NE(complaint({word}).find("64"), std::string::npos);
}

}  // namespace perf_vary_test
}  // namespace weft::plan
