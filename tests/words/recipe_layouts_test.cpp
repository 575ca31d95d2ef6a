// Recipes that extend others, and their layouts.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace recipe_layouts_test {

namespace fs = std::filesystem;

// Folder of recipes per test, removed afterwards.
class RecipeFolder : public testing::Test {
 protected:
  RecipeFolder() {
    std::string name = (fs::temp_directory_path() / "weft_recipes_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RecipeFolder() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& content) const {
    const fs::path file = folder_ / (name + ".yaml");
    fs::create_directories(file.parent_path());
    base::write_whole(file, content);
    return file;
  }
  ModelConfig model(const std::string& name) const {
    return load_config(find_recipe(folder_, name)).model;
  }
  std::vector<std::string> complaints(const std::string& name) const {
    return complaints_of([&] { load_config(find_recipe(folder_, name)); });
  }
  // Complaints about a file `some` with this content.
  std::vector<std::string> complaints_about(const std::string& content) const {
    write("some", content);
    return complaints("some");
  }

  fs::path folder_;
};

TEST_F(RecipeFolder, WhatIsExtendedComesFirst) {
  write("base", "model: {num_layers: 6, hidden_size: 96, vocab_size: 512}\n");
  write("middle", "extends: base\nmodel: {hidden_size: 192}\n");
  write("top", "model: {vocab_size: 1024}\nextends: middle\n");
  EXPECT_EQ(model("top").num_layers, 6);
  EXPECT_EQ(model("top").hidden_size, 192);
  EXPECT_EQ(model("top").vocab_size, 1024);
  EXPECT_EQ(model("base").hidden_size, 96);
}

TEST_F(RecipeFolder, ExtendsTakesANameBesideTheFileOrAPathFromIt) {
  write("sub/base", "model: {num_layers: 6}\n");
  write("up", "model: {num_layers: 7}\n");
  write("sub/named", "extends: base\n");
  write("by_path", "extends: sub/base.yaml\n");
  write("sub/outside", "extends: ../up.yaml\n");
  EXPECT_EQ(load_config(folder_ / "sub/named.yaml").model.num_layers, 6);
  EXPECT_EQ(model("by_path").num_layers, 6);
  EXPECT_EQ(load_config(folder_ / "sub/outside.yaml").model.num_layers, 7);
}

TEST_F(RecipeFolder, LayoutsComeAfterTheirFileAndOverridesLast) {
  write("net",
        "model: {num_layers: 6, hidden_size: 96}\n"
        "layout: small\n"
        "layouts:\n"
        "  small: {model: {num_layers: 2}}\n"
        "  large_two: {model: {num_layers: 60}, runtime: {world_size: 4}}\n");
  EXPECT_EQ(model("net").num_layers, 2) << "the layout that the file says";
  EXPECT_EQ(model("net_large_two").num_layers, 60);
  EXPECT_EQ(model("net_large_two").hidden_size, 96);
  const std::vector<std::string> overrides{"model.num_layers=3"};
  EXPECT_EQ(
      with_words(load_config(find_recipe(folder_, "net_large_two")), overrides).model.num_layers,
      3);
  EXPECT_EQ(find_recipe(folder_, "net_large_two").name(), "net_large_two");
  EXPECT_EQ(find_recipe(folder_, "net").layout, "");
}

TEST_F(RecipeFolder, WithoutALayoutThatTheFileSaysNoneRuns) {
  write("net", "model: {num_layers: 6}\nlayouts: {small: {model: {num_layers: 2}}}\n");
  EXPECT_EQ(model("net").num_layers, 6);
}

TEST_F(RecipeFolder, ExtendsMeansWhatTheNameRuns) {
  write("net", "layout: a\nlayouts: {a: {model: {num_layers: 2}}, b: {model: {num_layers: 3}}}\n");
  write("plain", "extends: net\n");
  write("other", "extends: net_b\n");
  EXPECT_EQ(model("plain").num_layers, 2);
  EXPECT_EQ(model("other").num_layers, 3);
  EXPECT_TRUE(any_names(complaints("other_a"), {"'other' has no layout 'a'", "it has none"}));
}

TEST_F(RecipeFolder, TheLongestFileNameWins) {
  write("net", "layouts: {big_one: {model: {num_layers: 2}}}\n");
  write("net_big", "layouts: {one: {model: {num_layers: 3}}}\n");
  EXPECT_EQ(model("net_big_one").num_layers, 3);
  write("net_big_one", "model: {num_layers: 4}\n");
  EXPECT_EQ(model("net_big_one").num_layers, 4) << "a file of that name comes first";
}

TEST_F(RecipeFolder, AnAbsentLayoutSuggestsTheNearest) {
  write("net", "layouts: {pretrain_8gpu: {}, sft_8gpu: {}}\n");
  EXPECT_TRUE(any_names(complaints("net_pretrain_9gpu"), {"did you mean 'net_pretrain_8gpu'?"}));
  EXPECT_TRUE(any_names(complaints("net_qqqqqqqqqqqqqqqq"), {"weft recipes net"}));
  EXPECT_TRUE(any_names(complaints("nt"), {"did you mean 'net'?"}));
  EXPECT_FALSE(complaints("net_").empty());
}

TEST_F(RecipeFolder, CirclesAreErrorsThatNameTheChain) {
  write("a", "extends: b\n");
  write("b", "summary: b\nextends: c\n");
  write("c", "extends: a\n");
  EXPECT_TRUE(any_names(complaints("a"), {"c.yaml:1", "circle", "a -> b -> c -> a"}));
  write("self", "extends: ./self.yaml\n");
  EXPECT_TRUE(any_names(complaints("self"), {"self -> self"}));
}

TEST_F(RecipeFolder, LongChainsAreErrorsThatNameTheChain) {
  write("r0", "model: {num_layers: 9}\n");
  for (int i = 1; i <= 9; ++i) {
    write(base::text("r{}", i), base::text("extends: r{}\n", i - 1));
  }
  EXPECT_EQ(model("r8").num_layers, 9);
  EXPECT_TRUE(any_names(complaints("r9"), {"more than 8", "r9 -> r8", "-> r0"}));
}

TEST_F(RecipeFolder, AnAbsentBaseNamesFileAndLine) {
  EXPECT_TRUE(any_names(complaints_about("summary: s\nextends: soem\n"),
                        {"some.yaml:2", "extends", "no recipe 'soem'"}));
  EXPECT_TRUE(any_names(complaints_about("extends: no/such.yaml\n"),
                        {"some.yaml:1", "no/such.yaml", "does not exist"}));
}

TEST_F(RecipeFolder, ABaseIsLookedForBesideTheFileAndThenInTheRecipesFolder) {
  write("shipped/net", "model: {num_layers: 6}\nlayouts: {b: {model: {num_layers: 3}}}\n");
  const auto layers = [&](const std::string& name, const std::string& content) {
    return load_config(write(name, content), folder_ / "shipped").model.num_layers;
  };
  EXPECT_EQ(layers("mine", "extends: net\n"), 6);
  EXPECT_EQ(layers("mine", "extends: net_b\n"), 3) << "a layout by its full name";
  EXPECT_EQ(layers("net", "extends: net\n"), 6) << "not itself";
  EXPECT_EQ(layers("net", "extends: net_b\n"), 3) << "the file beside has no such layout";
  write("net", "model: {num_layers: 9}\n");
  EXPECT_EQ(layers("mine", "extends: net\n"), 9);
  const auto absent = complaints_of([&] { layers("mine", "extends: nosuch\n"); });
  EXPECT_TRUE(any_names(absent, {"mine.yaml:1", "no recipe 'nosuch'", "shipped"}));
}

TEST_F(RecipeFolder, ABareFileNameMeansTheCurrentFolder) {
  write("base", "model: {num_layers: 6}\n");
  write("mine", "extends: base\n");
  write("lost", "extends: nosuch\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(load_config(ChosenRecipe("mine.yaml")).model.num_layers, 6);
  const auto absent = complaints_of([] { load_config(ChosenRecipe("lost.yaml")); });
  fs::current_path(before);
  ASSERT_EQ(absent.size(), 1u);
  EXPECT_EQ(absent[0].find("''"), std::string::npos) << absent[0];
}

TEST_F(RecipeFolder, APathMayNameALayout) {
  const std::string file =
      write("net", "model: {num_layers: 6}\nlayouts: {b: {model: {num_layers: 3}}}\n").string();
  EXPECT_EQ(load_config(find_recipe(folder_, file + ":b")).model.num_layers, 3);
  EXPECT_EQ(find_recipe(folder_, file + ":b").name(), "net_b");
  EXPECT_TRUE(any_names(complaints(file + ":c"), {"'net' has no layout 'c'"}));
  EXPECT_TRUE(any_names(complaints(file + "l:b"), {"does not exist"}));
}

TEST_F(RecipeFolder, LayoutsThatDoNotRunAreHeldAgainstTheKeys) {
  const auto all =
      complaints_about("layouts:\n  a: {}\n  b: {model: {num_layrs: 4}}\n  c: {rng: {seed: x}}\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(any_names(all, {"some.yaml:3", "num_layrs", "'model.num_layers'"}));
  EXPECT_TRUE(any_names(all, {"some.yaml:4", "rng.seed"}));
}

TEST_F(RecipeFolder, ANameIsKnownByItsBeginningAndWithoutCaseAndMarks) {
  write("qwen3_30b_a3b", "layouts: {pretrain: {}}\n");
  write("qwen3_30b_a3b_twin", "");
  for (const char* typed : {"qwen3_30b", "Qwen3-30B-A3B", "qwen3-30b-a3b"}) {
    EXPECT_TRUE(any_names(complaints(typed), {"did you mean 'qwen3_30b_a3b'?"})) << typed;
  }
  EXPECT_TRUE(any_names(complaints("Qwen3-30B-A3B-pretrain"), {"'qwen3_30b_a3b_pretrain'"}));
  EXPECT_FALSE(any_names(complaints("mine"), {"did you mean"}));
  write("qwen3_next", "");
  EXPECT_TRUE(any_names(complaints("qwen3"), {"one of qwen3_30b_a3b, qwen3_next?"}));
}

TEST_F(RecipeFolder, MalformedStructureNamesFileAndLine) {
  EXPECT_TRUE(any_names(complaints_about("extends: [a]\n"), {"some.yaml:1", "one name"}));
  EXPECT_TRUE(any_names(complaints_about("extends:\n"), {"some.yaml:1", "one name"}));
  EXPECT_TRUE(any_names(complaints_about("layout: {a: 1}\n"), {"some.yaml:1", "one name"}));
  EXPECT_TRUE(any_names(complaints_about("layouts: 3\n"), {"some.yaml:1", "layouts is a map"}));
  EXPECT_TRUE(any_names(complaints_about("layouts:\n  a: 3\n"),
                        {"some.yaml:2", "'a' is a map of sections"}));
  EXPECT_TRUE(
      any_names(complaints_about("layouts:\n  A-b: {}\n"), {"some.yaml:2", "'A-b'", "lower-case"}));
  EXPECT_TRUE(any_names(complaints_about("layouts:\n  a: {modle: {}}\n"),
                        {"some.yaml:2", "unknown section 'modle'", "'model'"}));
  EXPECT_TRUE(any_names(complaints_about("layouts:\n  a: {layouts: {}}\n"),
                        {"some.yaml:2", "unknown section 'layouts'"}));
  EXPECT_TRUE(any_names(complaints_about("layouts:\n  a: {}\n  a: {}\n"),
                        {"some.yaml:3", "'a' is given twice"}));
  EXPECT_TRUE(
      any_names(complaints_about("layouts: {a: {}}\nlayout: b\n"), {"some.yaml:2", "layout 'b'"}));
  EXPECT_TRUE(any_names(complaints_about("layout: a\nlayouts:\n  a: {model: {num_layers: x}}\n"),
                        {"some.yaml:3", "model.num_layers"}));
  EXPECT_EQ(complaints_about("layouts:\n"), std::vector<std::string>{});
}

}  // namespace recipe_layouts_test
}  // namespace weft::words
