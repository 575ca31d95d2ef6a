#include "weft/words/model_folder.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/words/resolution.h"

namespace weft::words {
namespace model_folder_test {

namespace fs = std::filesystem;

const fs::path kRecipes = WEFT_SOURCE_DIR "/recipes";
const std::string kFolder = WEFT_SOURCE_DIR "/tests/golden/qwen3_moe_tiny";

Resolution resolved(const std::vector<std::string>& words) {
  return resolve_words(kRecipes, words, Audience::Run);
}

TEST(ModelFolder, StandsInThePlaceOfARecipe) {
  for (const std::string& word : {kFolder, kFolder + "/", kFolder + "/config.json"}) {
    const Resolution run = resolved({word, "train.train_iters=3"});
    EXPECT_EQ(run.recipe, "");
    EXPECT_EQ(run.config.checkpoint.pretrained_checkpoint, word);
    EXPECT_EQ(run.config.train.train_iters, 3);
  }
}

TEST(ModelFolder, IsNoRecipeAndNoFolderWithoutAConfig) {
  EXPECT_EQ(resolved({"tiny"}).config.checkpoint.pretrained_checkpoint, "");
  EXPECT_EQ(model_config_file(kRecipes, "tiny"), std::nullopt);
  EXPECT_EQ(model_config_file(kRecipes, WEFT_SOURCE_DIR "/tests/golden"), std::nullopt);
  EXPECT_EQ(model_config_file(kRecipes, ""), std::nullopt);
  EXPECT_EQ(model_config_file(kRecipes, std::string(9999, 'x')), std::nullopt);
  EXPECT_EQ(model_config_file(kRecipes, kFolder), fs::path(kFolder) / "config.json");
}

TEST(ModelFolder, IsTheOnlyModel) {
  const std::vector<std::string> told = complaints_of([] {
    resolved({kFolder, "checkpoint.pretrained_checkpoint=elsewhere"});
  });
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("two models"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("elsewhere"), std::string::npos) << told[0];
}

}  // namespace model_folder_test
}  // namespace weft::words
