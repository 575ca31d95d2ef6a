// Checkpoints of runs as Hugging Face folders and back, and blended and split data, through the
// program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "tests/data/sequences_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace checkpoint_convert_test {

namespace fs = std::filesystem;
using base::Json;
using base::text;

class ConvertCommand : public ::testing::Test {
 protected:
  ConvertCommand() : folder_(fs::path(::testing::TempDir()) / text("weft_convert_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    data::write_sequences(at("a"), 40, 30);
    data::write_sequences(at("b"), 40, 30, 100);
  }
  ~ConvertCommand() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  static constexpr const char* kModel =
      "model.num_layers=1 model.hidden_size=32 model.num_attention_heads=2 "
      "model.num_query_groups=2 model.kv_channels=16 model.moe_ffn_hidden_size=16 ";

  Outcome train(const std::string& run, const std::string& more, const char* model = kModel) const {
    return weft(
        text("train tiny ep=1 dataset.path= dataset.kind=indexed dataset.blend=[0.7,{},0.3,{}] "
             "dataset.split=8,1,1 model.seq_length=16 logger.log_interval=1 "
             "scheduler.lr_warmup_iters=1 train.eval_interval=2 train.eval_iters=2 "
             "runtime.run_dir={} --json {} {}",
             at("a"),
             at("b"),
             at(run),
             model,
             more));
  }

  // Time-independent values of each step.
  std::vector<std::string> losses(const std::string& run) const {
    std::vector<std::string> all;
    for (const std::string& line :
         base::split(base::read_text(folder_ / run / "metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      const Json json = Json::parse(line);
      all.push_back(json["lm_loss"].dump() + " " + json.value("eval_loss", Json()).dump());
    }
    return all;
  }

  fs::path folder_;
};

TEST_F(ConvertCommand, MakesTheFolderThatTheRunWouldSave) {
  ASSERT_EQ(train("run",
                  text("world=2 ep=2 tp=1 model.bf16=true train.train_iters=2 checkpoint.save={} "
                       "checkpoint.save_hf={}",
                       at("saved"),
                       at("hf")))
                .code,
            0);
  const Outcome made =
      weft(text("checkpoint convert {} --to-hf={} --json", at("saved"), at("made")));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(Json::parse(made.out)["step"], 2);
  EXPECT_EQ(Json::parse(made.out)["dtype"], "bf16");
  for (const char* name : {"model.safetensors", "config.json"}) {
    EXPECT_EQ(base::read_text(folder_ / "made" / name), base::read_text(folder_ / "hf" / name));
  }
  EXPECT_EQ(weft(text("checkpoint convert {} --to-hf={}", at("saved"), at("made"))).code, 2);
  const Outcome wide =
      weft(text("checkpoint convert {} --to-hf={} --dtype=fp32 --json", at("saved"), at("wide")));
  ASSERT_EQ(wide.code, 0) << wide.err;
  EXPECT_EQ(Json::parse(wide.out)["dtype"], "fp32");

  // Weights are equal by every path into a run.
  const Outcome back = weft(text("checkpoint convert {} --to-weft={}", at("made"), at("back")));
  ASSERT_EQ(back.code, 0) << back.err;
  const std::string more = "model.bf16=true train.train_iters=2 rng.seed=5 ";
  const std::string starts[] = {text("checkpoint.load={} checkpoint.finetune=true", at("saved")),
                                text("checkpoint.load={} checkpoint.finetune=true", at("back"))};
  for (int i = 0; i < 2; ++i) {
    const Outcome run = train(text("start{}", i), more + starts[i]);
    ASSERT_EQ(run.code, 0) << run.err;
  }
  EXPECT_EQ(losses("start0"), losses("start1"));
  const Outcome folder =
      train("start2", more + text("checkpoint.pretrained_checkpoint={}", at("made")), "");
  ASSERT_EQ(folder.code, 0) << folder.err;
  EXPECT_EQ(losses("start0"), losses("start2"));
  EXPECT_EQ(losses("start2").size(), 2u);
  const Outcome whole = train("no", more + text("checkpoint.load={}", at("back")));
  EXPECT_EQ(whole.code, 2);
  EXPECT_NE(whole.err.find("checkpoint.finetune=true"), std::string::npos) << whole.err;
}

TEST_F(ConvertCommand, ABlendGoesOnWhereItWasLeft) {
  const std::string saving =
      text("checkpoint.save={} checkpoint.load={} ", at("saved"), at("saved"));
  ASSERT_EQ(train("whole", "train.train_iters=4").code, 0);
  ASSERT_EQ(train("run", saving + "train.train_iters=4 train.exit_interval=2").code, 0);
  EXPECT_EQ(losses("run").size(), 2u);
  ASSERT_EQ(train("run", saving + "train.train_iters=4").code, 0);
  EXPECT_EQ(losses("run"), losses("whole"));
  const Outcome none = train("none", "dataset.split=99,0,1 train.train_iters=4");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("dataset.split='99,0,1' leaves not one sample"), std::string::npos)
      << none.err;
}

// Values that training ignores are preserved.
TEST_F(ConvertCommand, ThereAndBackKeepsPositionsAndTheBalancingLoss) {
  const fs::path golden = fs::path(WEFT_SOURCE_DIR) / "tests/golden/olmoe_tiny";
  const auto numbers = [](const fs::path& folder) {
    const Json json = Json::parse(base::read_text(folder / "config.json"));
    return text("{} {}",
                json["max_position_embeddings"].dump(),
                json["router_aux_loss_coef"].dump());
  };
  const std::string expected = numbers(golden);
  EXPECT_EQ(expected, "64 0.01");
  ASSERT_EQ(weft(text("checkpoint convert {} --to-weft={}", golden.string(), at("weft"))).code, 0);
  ASSERT_EQ(weft(text("checkpoint convert {} --to-hf={}", at("weft"), at("hf"))).code, 0);
  EXPECT_EQ(numbers(folder_ / "hf"), expected);
  // A run that begins with the folder and a shorter sequence; and its own checkpoint.
  const Outcome run = weft(
      text("train ep=1 checkpoint.pretrained_checkpoint={} model.seq_length=16 "
           "train.train_iters=1 runtime.run_dir={} checkpoint.save={} checkpoint.save_hf={} --json",
           golden.string(),
           at("run"),
           at("saved"),
           at("out")));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(numbers(folder_ / "out"), expected);
  ASSERT_EQ(weft(text("checkpoint convert {} --to-hf={} --like={}",
                      at("saved"),
                      at("like"),
                      golden.string()))
                .code,
            0);
  EXPECT_EQ(numbers(folder_ / "like"), expected);
}

// Evaluated once, after the last step, and not if the run stopped earlier.
TEST_F(ConvertCommand, TheTestSplitIsEvaluatedAtTheEnd) {
  const std::string saving =
      text("checkpoint.save={} checkpoint.load={} train.train_iters=4 ", at("saved"), at("saved"));
  const Outcome left = train("run", saving + "train.exit_interval=2");
  ASSERT_EQ(left.code, 0) << left.err;
  EXPECT_FALSE(Json::parse(left.out).contains("test_loss"));
  const Outcome run = train("run", saving + "logger.tensorboard_dir=" + at("board"));
  ASSERT_EQ(run.code, 0) << run.err;
  const double loss = Json::parse(run.out)["test_loss"];
  EXPECT_NE(
      run.err.find(
          text(" validation loss at iteration 4 on test set | lm loss value: {:.6E} |", loss)),
      std::string::npos)
      << run.err;
  std::vector<std::string> lines =
      base::split(base::read_text(folder_ / "run" / "metrics.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(Json::parse(lines[i]).contains("test_loss"));
  EXPECT_EQ(Json::parse(lines[3])["test_loss"], loss);
  // Equal data, named per split.
  const auto train_apart = [&](const char* name, const char* evaluation) {
    return weft(
        text("train tiny ep=1 dataset.path= dataset.kind=indexed model.seq_length=16 "
             "train.train_iters=1 {3} runtime.run_dir={0}_{4} --json "
             "dataset.blend_per_split=[[0.7,{0},0.3,{1}],[{0}],[{1}]] {2}",
             at("a"),
             at("b"),
             kModel,
             evaluation,
             name));
  };
  const Outcome apart = train_apart("run", "train.eval_interval=0");
  ASSERT_EQ(apart.code, 0) << apart.err;
  EXPECT_TRUE(Json::parse(apart.out).contains("test_loss"));
  EXPECT_FALSE(Json::parse(apart.out).contains("eval_loss"));
  const Outcome none = train_apart("none", "train.eval_interval=1 train.eval_iters=0");
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_FALSE(Json::parse(none.out).contains("test_loss"));
  EXPECT_FALSE(Json::parse(none.out).contains("eval_loss"));
}

TEST_F(ConvertCommand, WrongWordsAreRefused) {
  EXPECT_EQ(weft("checkpoint convert x").code, 2);
  EXPECT_EQ(weft("checkpoint convert x --to-hf=a --to-weft=b").code, 2);
  EXPECT_EQ(weft(text("checkpoint convert {} --to-hf={}", at(""), at("o"))).code, 2);
  EXPECT_EQ(weft(text("checkpoint convert {} --to-weft={}", at(""), at("o"))).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "o"));
}

}  // namespace checkpoint_convert_test
}  // namespace weft::cli
