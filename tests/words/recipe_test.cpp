#include "weft/words/recipe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/config/dump.h"
#include "weft/config/field.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace recipe_test {

namespace fs = std::filesystem;

// Separate folder per test, removed afterwards.
class RecipeFile : public testing::Test {
 protected:
  RecipeFile() {
    std::string name = (fs::temp_directory_path() / "weft_recipe_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RecipeFile() override { fs::remove_all(folder_); }

  fs::path write(const std::string& content) const {
    const fs::path file = folder_ / "some.yaml";
    base::write_whole(file, content);
    return file;
  }
  std::vector<std::string> complaints(const std::string& content) const {
    const fs::path file = write(content);
    return complaints_of([&] { load_config(file); });
  }

  fs::path folder_;
};

TEST_F(RecipeFile, OverridesComeAfterTheRecipeAfterTheDefaults) {
  const fs::path file = write("model: {num_layers: 6, hidden_size: 96}\n");
  const std::vector<std::string> overrides{"model.hidden_size=192", "world=4"};
  const Config config = with_words(load_config(file), overrides);
  EXPECT_EQ(config.model.num_layers, 6);
  EXPECT_EQ(config.model.hidden_size, 192);
  EXPECT_EQ(config.model.num_attention_heads, Config().model.num_attention_heads);
  EXPECT_EQ(config.runtime.world_size, 4);
}

TEST_F(RecipeFile, EveryComplaintOfRecipeAndOverridesComesAtOnce) {
  const fs::path file = write("model:\n  num_layers: many\n  hiden_size: 3\n");
  const std::vector<std::string> words{file.string(), "train.micro_batch=2", "optimizer.lr=fast"};
  const auto all = complaints_of([&] { resolve_words(folder_, words, Audience::Run); });
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(
      any_names(all, {"some.yaml:2", "model.num_layers", "many", "integer", "model.num_layers=2"}));
  EXPECT_TRUE(any_names(all, {"some.yaml:3", "hiden_size", "'model.hidden_size'"}));
  EXPECT_TRUE(any_names(all, {"train.micro_batch", "'train.micro_batch_size'"}));
  EXPECT_TRUE(any_names(all, {"optimizer.lr", "fast", "number", "optimizer.lr=0.001"}));
}

TEST_F(RecipeFile, MalformedYamlNamesFileAndLine) {
  EXPECT_TRUE(any_names(complaints("model:\n  a: [1, 2\n"), {"some.yaml:", "not YAML"}));
  EXPECT_TRUE(any_names(complaints("model:\n\tnum_layers: 2\n"), {"some.yaml:2", "not YAML"}));
  EXPECT_TRUE(any_names(complaints("- 1\n- 2\n"), {"some.yaml:1", "map of sections"}));
  EXPECT_TRUE(any_names(complaints("just words\n"), {"map of sections"}));
  EXPECT_TRUE(any_names(complaints("model: 3\n"), {"some.yaml:1", "section 'model' is a map"}));
  EXPECT_TRUE(any_names(complaints("modle: {}\n"), {"unknown section 'modle'", "'model'"}));
  EXPECT_TRUE(any_names(complaints("model: {num_layers: {a: 1}}\n"), {"not a map"}));
  EXPECT_TRUE(any_names(complaints("model: {moe_layer_freq: [[1]]}\n"), {"single values"}));
  EXPECT_TRUE(any_names(complaints("model: {[1]: 1}\n"), {"a key is one word"}));
  EXPECT_TRUE(any_names(complaints("---\nrng: {}\n---\nrng: {}\n"),
                        {"some.yaml:3", "remove what follows"}));
}

TEST_F(RecipeFile, DuplicateKeysAreRefused) {
  EXPECT_TRUE(any_names(complaints("model:\n  num_layers: 2\n  num_layers: 3\n"),
                        {"some.yaml:3", "'num_layers' is given twice"}));
  EXPECT_TRUE(any_names(complaints("rng: {seed: 1}\nrng: {seed: 2}\n"),
                        {"some.yaml:2", "'rng' is given twice"}));
}

TEST_F(RecipeFile, HostileFilesAreErrors) {
  EXPECT_FALSE(complaints(std::string(100000, '[')).empty());
  EXPECT_FALSE(complaints("model: " + std::string(50000, '{')).empty());
  EXPECT_FALSE(complaints(std::string(300 << 10, '#')).empty());
  EXPECT_FALSE(complaints("model: &a {num_layers: *a}\n").empty());
  EXPECT_FALSE(complaints(std::string("model: {num_layers: \0}\n", 23)).empty());
  EXPECT_FALSE(complaints("model: {num_layers: 2}\n]\n").empty());
  EXPECT_FALSE(complaints("rng: [1]]\n").empty());
  const fs::path pipe = folder_ / "pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(complaints_of([&] { load_recipe(pipe); }).empty());
  EXPECT_FALSE(complaints_of([&] { load_recipe(folder_); }).empty());
}

TEST_F(RecipeFile, NullIsForOptionalKeysOnly) {
  EXPECT_EQ(load_config(write("model: {kv_channels: null}\n")).model.kv_channels, std::nullopt);
  EXPECT_TRUE(any_names(complaints("model: {hidden_size: null}\n"), {"'null'", "integer"}));
  EXPECT_EQ(load_config(write("dataset: {path: \"null\"}\nrng:\n")).dataset.path, "null");
}

TEST_F(RecipeFile, DumpLoadsBackToTheSameConfig) {
  Config config;
  config.model.num_query_groups = 2;
  config.model.moe_layer_freq = {1, 0};
  config.model.qk_layernorm = QkNorm::Projection;
  config.optimizer.lr = 0.1 + 0.2;
  config.optimizer.adam_eps = 1e-300;
  config.dataset.path = "a \"b\": #c \\ [d] é 'e'";
  config.dataset.extensions = {".md", "null", "a, b"};
  config.rng.seed = 9007199254740993;
  config.runtime.trace = true;
  const std::string yaml = to_yaml(config);
  const Config back = load_config(write(yaml));
  EXPECT_EQ(to_yaml(back), yaml);
  EXPECT_EQ(to_json(back), to_json(config));
  EXPECT_EQ(back.optimizer.lr, config.optimizer.lr);
  EXPECT_EQ(back.rng.seed, config.rng.seed);
}

TEST_F(RecipeFile, ARelativeDataPathIsAlsoLookedForBesideTheRecipesFolder) {
  fs::create_directories(folder_ / "recipes");
  fs::create_directories(folder_ / "weft_texts");
  base::write_whole(folder_ / "weft_tokens.idx", "");
  const fs::path file = folder_ / "recipes/some.yaml";
  const auto path = [&](const std::string& written, std::vector<std::string> overrides = {}) {
    base::write_whole(file, "dataset: {path: " + written + "}\n");
    return with_words(load_config(file), overrides).dataset.path;
  };
  EXPECT_EQ(path("weft_texts"), (folder_ / "weft_texts").string());
  EXPECT_EQ(path("weft_tokens"), (folder_ / "weft_tokens").string());
  EXPECT_EQ(path("weft_absent"), "weft_absent");
  EXPECT_EQ(path("."), ".") << "the current folder comes first";
  EXPECT_EQ(path("weft_texts", {"dataset.path=weft_tokens"}), "weft_tokens");
  // A path that a recipe inherits from another folder is found there.
  path("weft_texts");
  fs::create_directories(folder_ / "own/mine");
  base::write_whole(folder_ / "own/mine/one.yaml", "extends: some\n");
  EXPECT_EQ(load_config(folder_ / "own/mine/one.yaml", folder_ / "recipes").dataset.path,
            (folder_ / "weft_texts").string());
}

TEST_F(RecipeFile, OfTwoNamesOfAKeyItsOwnWinsInWhateverOrderTheSectionsStand) {
  const std::string model = "model: {overlap_p2p_comm: true}\n";
  const std::string own = "comm_overlap: {overlap_p2p_comm: false}\n";
  for (const std::string& content : {model + own, own + model}) {
    for (const bool as_recipe : {true, false}) {
      const std::string file = write(content).string();
      const std::vector<std::string> words = as_recipe
                                                 ? std::vector<std::string>{file}
                                                 : std::vector<std::string>{"--config-file", file};
      const Resolution run = resolve_words(folder_, words, Audience::Run);
      EXPECT_EQ(run.config.comm_overlap.overlap_p2p_comm, std::optional(false)) << content;
      ASSERT_EQ(run.warnings.size(), 1u) << content;
      EXPECT_EQ(run.warnings[0].id, "C4");
      EXPECT_NE(run.warnings[0].message.find("the value of model.overlap_p2p_comm is lost"),
                std::string::npos)
          << run.warnings[0].message;
    }
  }
  const Resolution alone =
      resolve_words(folder_, std::vector{write(model).string()}, Audience::Run);
  EXPECT_EQ(alone.config.comm_overlap.overlap_p2p_comm, std::optional(true));
  ASSERT_EQ(alone.warnings.size(), 1u);
  EXPECT_NE(alone.warnings[0].message.find("which it sets here"), std::string::npos);
}

TEST_F(RecipeFile, AnAbsentNameSuggestsTheNearest) {
  const fs::path recipes = WEFT_SOURCE_DIR "/recipes";
  EXPECT_EQ(find_recipe(recipes, "tiny"), recipes / "tiny.yaml");
  EXPECT_EQ(find_recipe(folder_, write("").string()), folder_ / "some.yaml");
  EXPECT_TRUE(any_names(complaints_of([&] { find_recipe(recipes, "tinny"); }), {"'tiny'"}));
  EXPECT_TRUE(any_names(complaints_of([&] { find_recipe(recipes, "no/such"); }),
                        {"no/such", "WEFT_RECIPES"}));
  EXPECT_TRUE(any_names(complaints_of([&] { find_recipe(recipes, "qqqqqqqqqqqq"); }),
                        {"qqqqqqqqqqqq", "WEFT_RECIPES"}));
  EXPECT_FALSE(complaints_of([&] { find_recipe(folder_ / "absent", "tiny"); }).empty());
}

TEST_F(RecipeFile, ATabIsNamedAsOne) {
  EXPECT_TRUE(any_names(complaints("model:\n  num_layers: 2\n\thidden_size: 8\n"),
                        {"some.yaml:3", "begins with a tab", "spaces"}));
}

TEST_F(RecipeFile, NestingWithoutEndIsNamedAsThat) {
  const std::string deep = "model: " + std::string(3000, '[') + std::string(3000, ']') + "\n";
  EXPECT_TRUE(any_names(complaints(deep), {"some.yaml:1", "nested too deeply"}));
}

// The same table as on the command line.
TEST_F(RecipeFile, TakesKeysOfMegatronBridge) {
  const fs::path file = write(
      "mixed_precision: bf16_with_mxfp8_mixed\n"
      "validation: {eval_iters: 7}\n"
      "profiling: {use_nsys_profiler: true}\n"
      "dataset: {num_workers: 2, eod_mask_loss: true}\n"
      "model:\n"
      "  moe_token_dispatcher_type: alltoall\n"
      "  pipeline_model_parallel_layout: [[embedding, decoder], [decoder, loss]]\n");
  const LoadedRecipe loaded = load_with_findings(file);
  EXPECT_EQ(loaded.config.model.fp8_recipe, Fp8Recipe::Mxfp8);
  EXPECT_EQ(loaded.config.train.eval_iters, 7);
  EXPECT_EQ(loaded.config.model.pipeline_model_parallel_layout, "Et|tL");
  ASSERT_EQ(loaded.config.runtime.unmodelled.size(), 1u);
  EXPECT_NE(loaded.config.runtime.unmodelled[0].find("some.yaml:4"), std::string::npos);
  const auto count = [&](std::string_view id) {
    return std::ranges::count(loaded.warnings, id, &Finding::id);
  };
  EXPECT_EQ(count("H14"), 2);
  EXPECT_EQ(count("H21"), 1);
  EXPECT_TRUE(any_names(complaints("model: {nosuch: 1}\n"), {"model.nosuch"}));
  EXPECT_TRUE(
      any_names(complaints("mixed_precision: nosuch\n"), {"mixed_precision", "fp16_mixed"}));
}

}  // namespace recipe_test
}  // namespace weft::words
