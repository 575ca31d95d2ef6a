// Recipes of this repository.
#include <gtest/gtest.h>

#include <set>

#include "tests/base/complaints_support.h"
#include "weft/derive/derived_run.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"

namespace weft::words {

using namespace config;
namespace shipped_recipes_test {

const std::set<std::string> kSmall{"tiny",
                                   "cpu_small",
                                   "overlap_bench",
                                   "overlap_bench_gpu",
                                   "qwen3_30b_a3b_gpu",
                                   "qwen3_30b_a3b_twin",
                                   "deepseek_v3_twin"};

template <typename Visit>
void for_each_shipped(const Visit& visit) {
  for (const std::filesystem::path& file : recipe_files(WEFT_SOURCE_DIR "/recipes")) {
    const Recipe recipe = load_recipe(file);
    visit(recipe, recipe.name, config_of(recipe, {}));
    for (const RecipeLayout& layout : recipe.layouts) {
      visit(recipe, recipe.full_name(layout), config_of(recipe, layout.name));
    }
  }
}

TEST(ShippedRecipes, EveryNameIsLegalAndFound) {
  std::size_t names = 0;
  for_each_shipped([&](const Recipe& recipe, const std::string& name, const Config& config) {
    const rules::Verdict verdict = rules::judge(config);
    for (const Finding& error : verdict.errors) ADD_FAILURE() << name << ": " << to_text(error);
    EXPECT_FALSE(recipe.summary.empty()) << name;
    const ChosenRecipe found = find_recipe(WEFT_SOURCE_DIR "/recipes", name);
    EXPECT_EQ(found.name(), name);
    EXPECT_EQ(found.file.stem().string(), recipe.name) << name;
    if (verdict.legal()) {
      EXPECT_GT(derive::derived_run(verdict.config).parameters.total, 0) << name;
    }
    ++names;
  });
  EXPECT_GT(names, 150u);
}

TEST(ShippedRecipes, SmallOnesRunAndOthersSayWhatIsMissing) {
  int missing_something = 0;
  for_each_shipped([&](const Recipe& recipe, const std::string& name, const Config& config) {
    std::string parts;
    for (const rules::Missing& missing : rules::judge(config).missing) parts += missing.part + "; ";
    if (kSmall.contains(recipe.name)) {
      EXPECT_EQ(parts, "") << name;
    } else if (!parts.empty()) {
      ++missing_something;
      if (name == recipe.name) std::printf("%s misses: %s\n", name.c_str(), parts.c_str());
    }
  });
  EXPECT_GT(missing_something, 0);
}

// A layout's name tells GPUs, their kind and the precision; its config must agree.
TEST(ShippedRecipes, LayoutsAreWhatTheirNamesSay) {
  for_each_shipped([&](const Recipe&, const std::string& name, const Config& config) {
    const std::size_t at = name.find("gpu_");
    if (at == std::string::npos) return;
    const std::string count = name.substr(name.rfind('_', at) + 1, at - name.rfind('_', at) - 1);
    EXPECT_EQ(std::to_string(config.runtime.world_size.value_or(0)), count) << name;
    const std::string gpu = name.substr(at + 4, name.find('_', at + 4) - at - 4);
    ASSERT_TRUE(config.hardware.gpu) << name;
    EXPECT_EQ(word(*config.hardware.gpu), gpu) << name;
    EXPECT_EQ(config.model.fp8.has_value(), name.find("_fp8") != std::string::npos) << name;
    EXPECT_EQ(config.model.fp4.has_value(), name.find("_nvfp4") != std::string::npos) << name;
  });
}

TEST(ShippedRecipes, ANamedLayoutIsTheReferences) {
  const Config config = load_config(
      find_recipe(WEFT_SOURCE_DIR "/recipes", "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"));
  EXPECT_EQ(config.model.expert_model_parallel_size, 16);
  EXPECT_EQ(config.train.global_batch_size, 1024);
  EXPECT_EQ(config.model.moe_flex_dispatcher_backend, FlexBackend::HybridEp);
  EXPECT_EQ(config.model.moe_flex_dispatcher_num_sms, 32);
  EXPECT_TRUE(config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_FALSE(config.comm_overlap.delay_wgrad_compute);
  const Config kimi =
      load_config(find_recipe(WEFT_SOURCE_DIR "/recipes", "kimi_k2_pretrain_512gpu_h100_bf16"));
  EXPECT_EQ(kimi.model.pipeline_model_parallel_size, 16);
  EXPECT_EQ(kimi.optimizer.optimizer, OptimizerKind::DistMuon);
}

// Twins keep experts, top-k, scores, the kind of attention and the leading layers.
TEST(ShippedRecipes, TwinsKeepTheShape) {
  const auto model = [](const char* name) {
    return load_config(find_recipe(WEFT_SOURCE_DIR "/recipes", name)).model;
  };
  for (const char* name : {"qwen3_30b_a3b", "deepseek_v3"}) {
    const ModelConfig big = model(name), twin = model((std::string(name) + "_twin").c_str());
    EXPECT_EQ(twin.experts(), big.experts()) << name;
    EXPECT_EQ(twin.moe_router_topk, big.moe_router_topk) << name;
    EXPECT_EQ(twin.moe_router_score_function, big.moe_router_score_function) << name;
    EXPECT_EQ(twin.multi_latent_attention, big.multi_latent_attention) << name;
    EXPECT_EQ(twin.num_layers - twin.moe_layers() > 0, big.num_layers - big.moe_layers() > 0);
    for (std::int64_t i = 0; i < twin.num_layers; ++i) {
      EXPECT_EQ(twin.is_moe_layer(i), big.is_moe_layer(i)) << name << " layer " << i;
    }
    EXPECT_EQ(twin.expert_model_parallel_size, 2);
  }
}

}  // namespace shipped_recipes_test
}  // namespace weft::words
