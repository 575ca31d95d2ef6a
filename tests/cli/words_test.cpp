// Words of the command line, through the program.
#include <gtest/gtest.h>

#include "tests/cli/program_support.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace words_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WordsOfACommand, FlagsOverridesAndTheRecipeComeInAnyOrder) {
  const Outcome grid = weft("grid --world-size 8 --json tiny --expert-model-parallel-size=4 -pp 2");
  ASSERT_EQ(grid.code, 0) << grid.err;
  const base::Json json = base::Json::parse(grid.out);
  EXPECT_EQ(json["world"], 8);
  EXPECT_EQ(json["expert"]["ep"], 4);
  EXPECT_EQ(json["expert"]["pp"], 2);
}

TEST(WordsOfACommand, WhatAWordOverrodeIsAWarning) {
  const Outcome grid = weft("grid tiny world=4 --world-size 2");
  EXPECT_EQ(grid.code, 0);
  EXPECT_TRUE(
      contains(grid.err, "warning: W23: --world-size 2 (word 3) overrides world=4 (word 2)"))
      << grid.err;
}

TEST(WordsOfACommand, HelpIsNotTheHarnesssToken) {
  EXPECT_TRUE(contains(weft("grid -h").out, "Example: weft grid"));
  const Outcome token = weft("grid tiny -hf secret");
  EXPECT_EQ(token.code, 0);
  EXPECT_TRUE(contains(token.err, "--hf_token"));
  EXPECT_FALSE(contains(token.err, "secret"));
}

TEST(WordsOfACommand, VerifyRefusesWhatTheFolderDecidesInAnySpelling) {
  const std::string folder = WEFT_SOURCE_DIR "/tests/golden/qwen3_moe_tiny ";
  const Outcome refused = weft("verify " + folder + "+model.num_layers=3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "model.num_layers")) << refused.err;
  EXPECT_EQ(weft("verify " + folder + "tiny").code, 2);
}

TEST(Completion, AnUnknownShellIsToldWhichThereAre) {
  for (const char* words : {"completion tcsh", "completion"}) {
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(contains(outcome.err, "bash, zsh or fish")) << outcome.err;
  }
}

TEST(Completion, BashCompletesCommandsKeysValuesAndRecipes) {
  const std::string script = weft("completion bash").out;
  for (const char* part : {"train",
                           "model.num_layers=",
                           "--expert-model-parallel-size",
                           "\"--moe_a2a_overlap\") echo \"true false\"",
                           "recipes --json",
                           "\"model.fp8\") echo \"e4m3 hybrid null\""}) {
    EXPECT_TRUE(contains(script, part)) << part;
  }
  EXPECT_EQ(weft("completion zsh").code, 0);
  EXPECT_TRUE(contains(weft("completion fish").out, "complete -c weft"));
}

TEST(WordsOfACommand, FilesMayComeThroughAPipe) {
  const std::string weft = "'" WEFT_BINARY "' ";
  const Outcome settings =
      shell("bash", weft + "grid tiny --json --config-file <(echo 'runtime: {world_size: 6}')\n");
  ASSERT_EQ(settings.code, 0) << settings.err;
  EXPECT_EQ(base::Json::parse(settings.out)["world"], 6);
  const Outcome recipe = shell("bash", weft + "grid --json <(echo 'runtime: {world_size: 3}')\n");
  ASSERT_EQ(recipe.code, 0) << recipe.err;
  EXPECT_EQ(base::Json::parse(recipe.out)["world"], 3);
}

}  // namespace words_test
}  // namespace weft::cli
