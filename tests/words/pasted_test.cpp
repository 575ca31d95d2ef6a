// Lines pasted from other programs.
#include "weft/words/megatron/pasted.h"

#include <gtest/gtest.h>

#include "tests/base/complaints_support.h"
#include "weft/base/text.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace pasted_test {

using Typed = std::vector<std::string>;

const std::filesystem::path kRecipes = WEFT_SOURCE_DIR "/recipes";

Typed meant(std::string_view line) { return meant_words(base::split(line, ' ')).words; }

TEST(Pasted, TheStartOfAnotherProgramIsLeftOut) {
  const Typed rest{"-mr", "qwen3_30b_a3b", "world=8"};
  for (const char* start : {"uv run python scripts/performance/run_script.py ",
                            "uv run scripts/performance/run_script.py ",
                            "python run_script.py ",
                            "python3 -u ./run_script.py ",
                            "/usr/bin/python3 -m torch.distributed.run run_script.py ",
                            "torchrun --nproc_per_node gpu run_script.py ",
                            "CUDA_DEVICE_MAX_CONNECTIONS=1 srun -N 2 train.py ",
                            "scripts/performance/run_script.py "}) {
    EXPECT_EQ(meant(start + std::string("-mr qwen3_30b_a3b world=8")), rest) << start;
  }
}

TEST(Pasted, HowManyProcessesAStartAsksForIsHowManyRanksThereAre) {
  const Typed eight{"world=8", "-m", "qwen"};
  for (const char* start : {"torchrun --nproc_per_node 8 run_script.py ",
                            "CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc-per-node=8 train.py ",
                            "torchrun --nnodes 2 --nproc-per-node=4 train.py ",
                            "python3 -m torch.distributed.run --nproc-per-node 8 train.py ",
                            "srun -N 4 --ntasks-per-node=2 python train.py ",
                            "srun --ntasks=8 python train.py ",
                            "/usr/bin/mpirun -np 8 python3 pretrain_gpt.py "}) {
    EXPECT_EQ(meant(start + std::string("-m qwen")), eight) << start;
  }
  EXPECT_EQ(meant_words(base::split("-tp 2 torchrun --nproc_per_node 8 x.py -m qwen", ' ')).places,
            (std::vector<int>{1, 2, 4, 7, 8}));
  for (const char* number : {"0", "1e12", "2.5", "many"}) {
    const std::string line = base::text("torchrun --nproc-per-node {} x.py -m qwen", number);
    EXPECT_EQ(meant(line), (Typed{"-m", "qwen"})) << number;
  }
}

TEST(Pasted, RealStartsSayTheirRanks) {
  struct Case {
    const char* start;
    std::int64_t world, on_machine;
  };
  for (const Case& one : {Case{"srun -N4 -n32 python", 32, 8},
                          Case{"srun -N 4-8 --ntasks-per-node=8 python", 64, 8},
                          Case{"torchrun --nnodes=1:4 --nproc-per-node 8", 32, 8},
                          Case{"nsys profile -s none -o out torchrun --nproc_per_node 8", 8, 8},
                          Case{"nohup torchrun --nproc-per-node=4 --nnodes 2", 8, 4},
                          Case{"nice -n 10 torchrun --nproc-per-node 2", 2, 2},
                          Case{"numactl -N 0 -m 0 mpirun -np 16 python", 16, 0},
                          Case{"srun -N 2 torchrun --nproc-per-node 8", 16, 8},
                          Case{"A_B=1 env C=2 accelerate launch --num_processes 8", 8, 0}}) {
    const MeantWords words =
        meant_words(base::split(one.start + std::string(" pretrain_gpt.py --lr 1"), ' '));
    EXPECT_EQ(words.launch.processes, one.world) << one.start;
    EXPECT_EQ(words.launch.on_machine.value_or(0), one.on_machine) << one.start;
    EXPECT_EQ(words.program, "pretrain_gpt.py") << one.start;
    const std::string world = base::text("world={}", one.world);
    EXPECT_EQ(words.words, (Typed{world, "--lr", "1"})) << one.start;
  }
  EXPECT_EQ(
      meant_words(base::split("torchrun --nnodes=1:4 --nproc-per-node 8 x.py", ' ')).launch.fewest,
      8);
  const MeantWords each = meant_words(base::split("torchrun --nproc-per-node gpu x.py", ' '));
  EXPECT_TRUE(each.launch.one_for_each_gpu && !each.launch.processes);
  EXPECT_EQ(meant("torchrun --nproc-per-node 8 -m my.pretrain_gpt --lr 1"),
            (Typed{"world=8", "--lr", "1"}));
}

TEST(Pasted, AQuotedLineIsTakenApart) {
  const Typed line{"cd /x && A=1 torchrun --nproc-per-node 2 train.py \\\n --lr '1' > log 2>&1"};
  EXPECT_EQ(meant_words(line).words, (Typed{"world=2", "--lr", "1"}));
  EXPECT_EQ(meant_words(line).places, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(meant_words(Typed{"--lr 1 --num-layers 2"}).words.size(), 4u);
  EXPECT_EQ(meant_words(Typed{"my recipe.yaml"}).words, (Typed{"my recipe.yaml"}));
}

TEST(Pasted, FlagsBeforeAnotherProgramStay) {
  const std::string start = "uv run python scripts/performance/run_script.py -m qwen";
  for (const char* flags : {"--dryrun",
                            "-tp 2",
                            "--verbose --num-layers 4",
                            "--num-layers=4",
                            "hardware.gpu=h100 tp=2"}) {
    EXPECT_EQ(meant(flags + (" " + start)), base::split(flags + std::string(" -m qwen"), ' '))
        << flags;
  }
  EXPECT_EQ(meant("--dryrun CUDA_DEVICE_MAX_CONNECTIONS=1 run_script.py -m qwen"),
            (Typed{"--dryrun", "-m", "qwen"}));
  // A flag's argument is its value, whatever its name.
  EXPECT_EQ(meant("-m python tiny.py"), (Typed{"-m", "python"}));
  EXPECT_EQ(meant_words(base::split("--dryrun uv run x.py -m qwen", ' ')).places,
            (std::vector<int>{1, 5, 6}));
}

TEST(Pasted, WordsThatStartNothingStay) {
  for (const char* line : {"tiny world=8",
                           "uv",
                           "python world=8",
                           "tiny run_script.py",
                           "--dryrun tiny uv run x.py",
                           "-m python tiny"}) {
    EXPECT_EQ(meant(line), base::split(line, ' ')) << line;
  }
}

TEST(Pasted, SpacesAroundTheEqualsSignJoinThreeWords) {
  const Typed one{"model.num_layers=4", "tiny"};
  EXPECT_EQ(meant("model.num_layers = 4 tiny"), one);
  EXPECT_EQ(meant("model.num_layers =4 tiny"), one);
  EXPECT_EQ(meant("model.num_layers= 4 tiny"), one);
  EXPECT_EQ(meant_words(Typed{"model.num_layers = 4", "tiny"}).words, one);
  EXPECT_EQ(meant("++model.num_layers = 4")[0], "++model.num_layers=4");
  // A text may be cleared, and a word before it may be a recipe.
  EXPECT_EQ(meant("dataset.path= tiny"), (Typed{"dataset.path=", "tiny"}));
  EXPECT_EQ(meant("tiny =4"), (Typed{"tiny", "=4"}));
  EXPECT_EQ(meant("model.num_layers = --json"), (Typed{"model.num_layers=", "--json"}));
}

TEST(Pasted, TheNameOfTheConfigBeforeAKeyIsLeftOut) {
  EXPECT_EQ(meant("cfg.model.num_layers=4")[0], "model.num_layers=4");
  EXPECT_EQ(meant("+cfg.model.num_layers = 4")[0], "+model.num_layers=4");
  EXPECT_EQ(meant("~cfg.model.num_layers")[0], "~model.num_layers");
  EXPECT_EQ(meant("cfg.yaml")[0], "cfg.yaml");
}

TEST(Pasted, PlacesAreThoseOfTheLineAsTyped) {
  EXPECT_EQ(meant_words(base::split("python x.py model.num_layers = 4 tiny", ' ')).places,
            (std::vector<int>{3, 6}));
}

TEST(Pasted, ALineOfTheHarnessIsReadForCheckAndPerfAlike) {
  const Typed line = base::split(
      "uv run python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task pretrain "
      "-ng 16 -g h100 -c bf16 cfg.train.train_iters = 20",
      ' ');
  const Resolution checked = resolve_words(kRecipes, line, Audience::Run);
  const Resolution timed = resolve_words(kRecipes, line, Audience::Perf);
  EXPECT_EQ(checked.recipe, "qwen3_30b_a3b_pretrain_16gpu_h100_bf16");
  EXPECT_EQ(timed.recipe, checked.recipe);
  EXPECT_EQ(checked.config.train.train_iters, 20);
  EXPECT_EQ(timed.config.train.train_iters, 20);
  Typed flagged = line;
  flagged.insert(flagged.begin(), "--dryrun");
  const Resolution dry = resolve_words(kRecipes, flagged, Audience::Perf);
  EXPECT_EQ(dry.recipe, timed.recipe);
  EXPECT_TRUE(dry.harness.dryrun);
}

TEST(Pasted, ACommandSaysOfFlagsOfTheMeasurementThatTheyChangeNothing) {
  const Typed words{"tiny", "--timing_threshold", "0.1", "--dryrun", "--task", "pretrain"};
  const Resolution checked = resolve_words(kRecipes, words, Audience::Run);
  std::vector<std::string> said;
  for (const Finding& warning : checked.warnings) {
    if (warning.id == "H14") said.push_back(warning.message);
  }
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(said[0].starts_with("--timing_threshold changes nothing")) << said[0];
  EXPECT_TRUE(said[1].starts_with("--dryrun changes nothing")) << said[1];
}

}  // namespace pasted_test
}  // namespace weft::words
