#include <gtest/gtest.h>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/grid/group_kind.h"

namespace weft::cli {
namespace program_test {

using base::Json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Program, HelpShowsAnExampleEverywhere) {
  for (const char* command : {"", "grid ", "schedule ", "recipes ", "doctor ", "config "}) {
    const Outcome help = weft(std::string(command) + "--help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_TRUE(contains(help.out, "Example: weft")) << help.out;
    EXPECT_EQ(help.err, "");
  }
  EXPECT_TRUE(contains(weft("grid --help").out, "weft config"));
}

TEST(Program, WrongUseExitsWithTwo) {
  for (const char* arguments : {"",
                                "gird",
                                "gird --help",
                                "--no",
                                "grid --jsn",
                                "config extra",
                                "recipes x=1",
                                "doctor extra"}) {
    const Outcome wrong = weft(arguments);
    EXPECT_EQ(wrong.code, 2) << arguments;
    EXPECT_EQ(wrong.out, "") << arguments;
    EXPECT_TRUE(wrong.err.starts_with("error: ")) << wrong.err;
  }
  EXPECT_TRUE(contains(weft("gird").err, "did you mean 'weft grid'?"));
}

TEST(Program, WhatIsMisnamedIsNamed) {
  EXPECT_TRUE(contains(weft("bench bogus").err, "no command 'bench bogus'"));
  EXPECT_TRUE(contains(weft("bench stp").err, "did you mean 'weft bench step'?"));
  EXPECT_TRUE(contains(weft("--bogus").err, "no option '--bogus'"));
  EXPECT_TRUE(contains(weft("bench --bogus").err, "no option '--bogus' (weft bench --help"));
  for (const char* help : {"-h", "bench -h", "bench step -h"}) EXPECT_EQ(weft(help).code, 0);
}

TEST(Program, AUsageLineNamesWhatACommandTakes) {
  for (const char* command : {"train", "check", "schedule", "grid", "perf", "bench step"}) {
    const std::string help = weft(std::string(command) + " --help").out;
    EXPECT_TRUE(
        contains(help, base::text("Usage: weft {} [RECIPE] [a.b=c ...] [OPTIONS]", command)))
        << help;
    EXPECT_TRUE(contains(help, "-h,--help")) << help;
  }
  EXPECT_TRUE(contains(weft("--help").out, "Usage: weft COMMAND [OPTIONS]"));
  EXPECT_TRUE(contains(weft("recipes --help").out, "Usage: weft recipes [NAME] [OPTIONS]"));
}

TEST(Program, HelpIsInOneVoice) {
  for (const char* command : {"", "bench ", "train ", "recipes "}) {
    const std::string help = weft(command + std::string("--help")).out;
    EXPECT_TRUE(contains(help, "print this and leave")) << help;
    EXPECT_FALSE(contains(help, "Subcommands")) << help;
    EXPECT_FALSE(contains(help, "and exit")) << help;
  }
  EXPECT_TRUE(contains(weft("--help").out, "Commands:")) << weft("--help").out;
}

TEST(Program, ABenchSaysOnceWhichRecipeItTakes) {
  for (const auto& [bench, recipe] : {std::pair{"step", "cpu_small"},
                                      {"overlap", "overlap_bench"},
                                      {"schedule", "overlap_bench"}}) {
    const std::string help = weft(base::text("bench {} --help", bench)).out;
    EXPECT_TRUE(contains(help, base::text("without one {} is taken", recipe))) << help;
    EXPECT_FALSE(contains(help, "the defaults of `weft config` hold")) << help;
  }
  EXPECT_TRUE(contains(weft("train --help").out, "the defaults of `weft config` hold"));
}

TEST(Program, WithJsonAnErrorIsOneObjectOnStandardOutput) {
  struct Case {
    const char* arguments;
    int code;
    const char* part;
  };
  for (const Case& wrong : {Case{"train tiny model.num_layer=3 world=x", 2, "model.num_layers"},
                            Case{"train tiny checkpoint.pretrained_checkpoint=none", 2, "none"},
                            Case{"schedule tiny model.num_layers=0", 2, "model.num_layers"},
                            Case{"grid world=7 ep=2", 2, "world = 7"},
                            Case{"verify nowhere", 2, "nowhere"},
                            Case{"train dataset.kind=indexed dataset.path=no", 2, "no.idx"},
                            Case{"perf nosuch", 2, "nosuch"},
                            Case{"bench step nosuch", 2, "nosuch"},
                            Case{"recipes nosuch", 2, "nosuch"},
                            Case{"check --explain nosuch", 2, "nosuch"},
                            Case{"check --explain ''", 2, "--explain"},
                            Case{"nosuch", 2, "nosuch"},
                            Case{"schedule tiny --flops 0", 2, "--flops"}}) {
    const Outcome outcome = weft(std::string(wrong.arguments) + " --json");
    EXPECT_EQ(outcome.code, wrong.code) << wrong.arguments << outcome.err;
    const Json json = Json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << wrong.arguments << ": " << outcome.out;
    EXPECT_TRUE(contains(json["error"], wrong.part)) << outcome.out;
    EXPECT_EQ(json["errors"][0], json["error"]);
    EXPECT_TRUE(contains(outcome.err, "error: ")) << wrong.arguments;
  }
  EXPECT_EQ(Json::parse(weft("train tiny model.num_layer=3 world=x --json").out)["errors"].size(),
            2u);
}

TEST(Program, HelpAndVersionAreWordsToo) {
  EXPECT_EQ(weft("help").out, weft("--help").out);
  EXPECT_EQ(weft("help checkpoint show").out, weft("checkpoint show --help").out);
  EXPECT_EQ(weft("version").out, weft("--version").out);
  EXPECT_EQ(weft("help nosuch").code, 2);
}

TEST(Program, NoNameOnTheCommandLineSteersTheTerminal) {
  const std::string name = "run\xe2\x80\xae\x1b]0;title";
  for (const std::string& words : {"train '" + name + "'", "report '" + name + "'"}) {
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(contains(outcome.err, R"(run\u202e\x1b]0;title)")) << outcome.err;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
  }
}

// All ranks find the errors of the words; an error of a single rank is not lost.
TEST(Program, ARankOfALauncherSaysWhoItIs) {
  const std::string launcher = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=";
  const Outcome first = weft("train tiny model.num_layer=3", launcher + "0");
  EXPECT_TRUE(contains(first.err, "error: override")) << first.err;
  const Outcome second = weft("train tiny model.num_layer=3", launcher + "1");
  EXPECT_TRUE(contains(second.err, "error: rank 1: override")) << second.err;
}

TEST(Program, AGpuWithoutAPriceIsToldAsOne) {
  const Outcome outcome = weft("plan tiny --gpus=8 --gpu=a100");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "a100 has no price")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "h200")) << outcome.err;
}

TEST(Program, AFullDiskIsAFailure) {
  const Outcome full = weft("config >/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_TRUE(contains(full.err, "standard output"));
}

TEST(GridCommand, JsonHoldsEveryGroup) {
  const Outcome grid = weft(
      "grid world=16 model.tensor_model_parallel_size=2 model.context_parallel_size=2 "
      "model.pipeline_model_parallel_size=2 model.expert_model_parallel_size=4 "
      "model.expert_tensor_parallel_size=1 --json");
  ASSERT_EQ(grid.code, 0) << grid.err;
  const Json json = Json::parse(grid.out);
  EXPECT_EQ(json["world"], 16);
  EXPECT_EQ(json["groups"].size(), grid::kGroupKinds.size());
  EXPECT_EQ(json["groups"]["ep"][1], (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(json["groups"]["tp_ep_pp"][0], (std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(GridCommand, TextHasOneLineAGroup) {
  const Outcome grid = weft("grid tiny world=4");
  ASSERT_EQ(grid.code, 0) << grid.err;
  EXPECT_TRUE(contains(grid.out, "\nep                  {0,1} {2,3}\n")) << grid.out;
  EXPECT_TRUE(contains(grid.out, "\nworld               {0-3}\n")) << grid.out;
}

TEST(GridCommand, EveryComplaintIsALine) {
  const Outcome wrong =
      weft("grid model.hiden_size=3 train.train_iters=soon 'model.num_layers=1 2'");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.out, "");
  const auto lines = base::split(wrong.err, '\n');
  ASSERT_EQ(lines.size(), 4u) << wrong.err;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(lines[i].starts_with("error: ")) << lines[i];
  EXPECT_TRUE(contains(lines[0], "did you mean 'model.hidden_size'?"));
  EXPECT_TRUE(contains(lines[1], "train.train_iters=10"));
  EXPECT_TRUE(contains(lines[2], "'1 2'"));
}

TEST(GridCommand, IllegalLayoutsSayWhy) {
  const Outcome wrong = weft("grid world=7 model.expert_model_parallel_size=2 --json");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(Json::parse(wrong.out)["error"], "world = 7"));
  EXPECT_TRUE(contains(wrong.err, "world = 7"));
  for (const char* world : {"0", "-4", "1048577", "9223372036854775807", "99999999999999999999"}) {
    EXPECT_EQ(weft(base::text("grid world={}", world)).code, 2) << world;
  }
}

TEST(GridCommand, TakesListsAndOneRecipe) {
  EXPECT_EQ(weft("grid tiny 'model.moe_layer_freq=[1,0,1,0]'").code, 0);
  const Outcome two = weft("grid tiny cpu_small");
  EXPECT_EQ(two.code, 2);
  EXPECT_TRUE(contains(two.err, "two recipes"));
  EXPECT_TRUE(contains(weft("grid tinny").err, "did you mean 'tiny'?"));
  EXPECT_EQ(weft("grid " WEFT_SOURCE_DIR "/recipes/tiny.yaml").code, 0);
}

TEST(RecipesCommand, ListsWhatIsThere) {
  const Outcome recipes = weft("recipes --json");
  ASSERT_EQ(recipes.code, 0) << recipes.err;
  const Json json = Json::parse(recipes.out);
  bool found = false;
  for (const Json& recipe : json["recipes"]) {
    EXPECT_FALSE(recipe["summary"].get<std::string>().empty());
    found = found || (recipe["name"] == "tiny" && recipe["gpus"] == 2);
  }
  EXPECT_TRUE(found) << recipes.out;
  EXPECT_TRUE(contains(weft("recipes").out, "cpu_small"));
}

TEST(RecipesCommand, ListsTheLayoutsOfOne) {
  const Outcome text = weft("recipes qwen3_30b_a3b");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"));
  const Json json = Json::parse(weft("recipes --json").out);
  bool found = false;
  for (const Json& recipe : json["recipes"]) {
    found = found ||
            (recipe["name"] == "qwen3_30b_a3b_pretrain_64gpu_h100_bf16" && recipe["gpus"] == 64);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(weft("recipes no_such_recipe").code, 2);
}

TEST(RecipesCommand, TriesWhichStart) {
  const Outcome one = weft("recipes tiny --start --json");
  ASSERT_EQ(one.code, 0) << one.err;
  const Json json = Json::parse(one.out);
  EXPECT_EQ(json["started"], 1);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["recipes"][0]["name"], "tiny");
  EXPECT_EQ(json["recipes"][0]["start"], "started");
  const Outcome missing = weft("recipes --start kimi_k2_pretrain_512gpu_h100_bf16");
  EXPECT_EQ(missing.code, 0) << missing.err;
  EXPECT_TRUE(missing.out.starts_with("0 of 1 recipe start; 1 miss a part")) << missing.out;
  EXPECT_TRUE(contains(missing.out, "optimizers other than AdamW")) << missing.out;
  EXPECT_EQ(weft("recipes --start no_such_recipe").code, 2);
}

TEST(RecipesCommand, TheFolderMayBeChosen) {
  const Outcome absent = weft("recipes", "WEFT_RECIPES=/no/such/folder");
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(contains(absent.err, "/no/such/folder"));
}

TEST(ConfigCommand, ListsEveryKey) {
  EXPECT_TRUE(contains(weft("config").out, "model.num_layers=2"));
  const Json json = Json::parse(weft("config --json").out);
  EXPECT_EQ(json["keys"][0]["key"], "model.num_layers");
  EXPECT_EQ(json["keys"][0]["default"], 2);
  EXPECT_EQ(weft("config --markdown").out, base::read_text(WEFT_SOURCE_DIR "/docs/config.md"));
}

TEST(ConfigCommand, ListsTheKeysWithAPartInTheirName) {
  const std::string found = weft("config num_layers").out;
  EXPECT_TRUE(contains(found, "model.num_layers=2"));
  EXPECT_FALSE(contains(found, "hidden_size="));
  EXPECT_EQ(Json::parse(weft("config --json optimizer.lr").out)["keys"][0]["key"], "optimizer.lr");
  const Outcome unknown = weft("config nosuch");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "no key has 'nosuch' in its name"));
}

}  // namespace program_test
}  // namespace weft::cli
