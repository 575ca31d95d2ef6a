#include "weft/measure/runs/start.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::measure {

namespace start_test {

namespace fs = std::filesystem;

class StartOfARecipe : public testing::Test {
 protected:
  StartOfARecipe() {
    std::string name = (fs::temp_directory_path() / "weft_start_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~StartOfARecipe() override { fs::remove_all(folder_); }

  std::optional<Start> start(const config::Config& config) {
    return try_start({.config = config, .run_dir = folder_ / "run", .stop = &stop_});
  }
  static config::Config recipe(const std::string& name,
                               const std::vector<std::string>& words = {}) {
    return words::with_words(
        words::load_config(words::find_recipe(WEFT_SOURCE_DIR "/recipes", name)),
        words);
  }

  fs::path folder_;
  std::atomic<bool> stop_ = false;
};

// Layouts with different requirements; `weft recipes --start` tries all of them.
TEST_F(StartOfARecipe, TrainsTwoStepsOfASample) {
  for (const char* name : {"tiny",
                           "deepseek_v3_twin",
                           "mixtral_8x7b_pretrain_32gpu_h100_bf16",
                           "moonlight_16b_pretrain_16gpu_h100_bf16",
                           "qwen3_235b_a22b_pretrain_256gpu_h100_bf16",
                           "qwen3_235b_a22b_pretrain_256gpu_h100_bf16_base",
                           "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_base",
                           "moonlight_16b_sft_8gpu_h100_bf16_8k"}) {
    const auto tried = start(recipe(name));
    ASSERT_TRUE(tried) << name;
    EXPECT_EQ(tried->state, StartState::Started)
        << name << ": " << fmt::format("{}", fmt::join(tried->why, "; "));
    EXPECT_GT(tried->seconds, 0) << name;
  }
}

TEST_F(StartOfARecipe, NamesThePartsThatAreMissing) {
  const auto tried = start(recipe("tiny", {"model.mtp_num_layers=1"}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->state, StartState::Missing);
  EXPECT_EQ(tried->why, std::vector<std::string>{"multi-token prediction"});
}

TEST_F(StartOfARecipe, NamesTheRulesThatRefuseIt) {
  const auto tried = start(recipe("tiny", {"model.moe_router_topk=1000"}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->state, StartState::Illegal);
  EXPECT_FALSE(tried->why.empty());
}

TEST_F(StartOfARecipe, StopsWhenItIsTold) {
  stop_ = true;
  EXPECT_FALSE(start(recipe("tiny")));
}

TEST_F(StartOfARecipe, SaysWhatWentWrong) {
  std::ofstream(folder_ / "run") << "a file where the run's folder would be";
  const auto tried = start(recipe("tiny"));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->state, StartState::Failed);
  EXPECT_FALSE(tried->why.empty());
}

}  // namespace start_test
}  // namespace weft::measure
