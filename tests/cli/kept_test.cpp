// User files are never lost, and the run is as typed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/base/complaints_support.h"
#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/cli/perf/perf_folder.h"
#include "weft/cli/run/picture_file.h"
#include "weft/data/token_import.h"

namespace weft::cli {
namespace kept_test {

namespace fs = std::filesystem;
using base::Json;
using base::text;

const std::string kGolden = WEFT_SOURCE_DIR "/tests/golden/";

bool has(const std::string& all, const std::string& part) {
  return all.find(part) != std::string::npos;
}

class Kept : public ::testing::Test {
 protected:
  Kept() : folder_(fs::path(::testing::TempDir()) / text("weft_kept_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Kept() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // Copy of a golden model, with a tokenizer.
  std::string model(const std::string& name) const {
    fs::create_directories(at("HF"));
    for (const char* file : {"config.json", "model.safetensors"}) {
      fs::copy_file(kGolden + name + "/" + file, at("HF") + "/" + file);
    }
    base::write_whole(at("HF") + "/tokenizer.json", "{}");
    return at("HF");
  }
  // 4000 token ids below 256, as weft data import writes them.
  std::string ids() const {
    std::string documents;
    for (int i = 0; i < 80; ++i) {
      std::string list;
      for (int k = 0; k < 50; ++k) list += text("{}{}", k == 0 ? "" : ",", (i * 7 + k * k) % 250);
      documents += text("[{}]\n", list);
    }
    base::write_whole(at("ids.jsonl"), documents);
    EXPECT_EQ(weft(text("data import {} --out {}", at("ids.jsonl"), at("ids"))).code, 0);
    return at("ids");
  }

  fs::path folder_;
};

TEST_F(Kept, AModelIsContinuedFromItsFolderAloneAndStaysAsItWas) {
  const std::string folder = model("qwen3_moe_tiny");
  const std::string weights = base::read_text(folder + "/model.safetensors");
  const std::string run = text(
      "train {} dataset.path={} train.train_iters=2 gbs=2 model.seq_length=16 "
      "runtime.run_dir={} ",
      folder,
      ids(),
      at("run"));
  const Outcome refused = weft(run + "checkpoint.save_hf=" + folder);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "error: checkpoint.save_hf: '" + folder + "' is there already"))
      << refused.err;
  EXPECT_EQ(base::read_text(folder + "/model.safetensors"), weights);
  const Outcome good = weft(run + "checkpoint.save_hf=" + at("out"));
  ASSERT_EQ(good.code, 0) << good.err;
  EXPECT_TRUE(has(good.out, "weft: HF: ")) << good.out;
  EXPECT_TRUE(has(good.out, "defaults  of a run that continues a model")) << good.out;
  EXPECT_TRUE(has(good.out, "optimizer.lr=1e-05 optimizer.min_lr=1e-06")) << good.out;
  EXPECT_TRUE(has(good.out, "eval      before the first step: held-out ")) << good.out;
  EXPECT_EQ(base::read_text(at("out") + "/tokenizer.json"), "{}");
  EXPECT_FALSE(fs::exists(at("out.partial")));
  // Its metrics are protected from another run.
  const std::string metrics = base::read_text(at("run") + "/metrics.jsonl");
  const Outcome again = weft(run);
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "runtime.run_dir: '" + at("run") + "' has metrics.jsonl"))
      << again.err;
  EXPECT_EQ(base::read_text(at("run") + "/metrics.jsonl"), metrics);
  const Outcome replaced = weft(run + "--overwrite checkpoint.save_hf=" + folder);
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_NE(base::read_text(folder + "/model.safetensors"), weights);
  EXPECT_EQ(base::read_text(folder + "/tokenizer.json"), "{}");
}

TEST_F(Kept, TextIsNeitherIgnoredNorFedToAModelWithATokenizer) {
  const std::string folder = model("qwen3_moe_tiny");
  base::write_whole(at("own.txt"), std::string(4000, 'a'));
  for (const std::string& words : {text("train {} dataset.path={}", folder, at("own.txt")),
                                   text("check checkpoint.pretrained_checkpoint={} "
                                        "dataset.kind=text dataset.path={}",
                                        folder,
                                        at("own.txt"))}) {
    const Outcome refused = weft(words);
    EXPECT_EQ(refused.code, 2) << words;
    EXPECT_TRUE(has(refused.out + refused.err, "weft data import")) << refused.out << refused.err;
  }
  const Outcome own = weft(text("train dataset.path={} train.train_iters=1 runtime.run_dir={}",
                                at("own.txt"),
                                at("run")));
  EXPECT_EQ(own.code, 0) << own.err;
  EXPECT_TRUE(has(own.out, "own.txt (text): 4000 tokens")) << own.out;
}

TEST_F(Kept, ACheckpointKnowsItsModelAndWhenThereIsNothingLeftToDo) {
  const std::string made = text("checkpoint convert {} --to-weft={}", model("olmoe_tiny"), at("c"));
  const Outcome converted = weft(made);
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_TRUE(has(converted.out, "weft train checkpoint.load=" + at("c") + " ")) << converted.out;
  EXPECT_EQ(weft(made).code, 2) << "it is there already";
  base::write_whole(at("own.txt"), std::string(4000, 'a'));
  const Outcome bytes =
      weft(text("train checkpoint.load={} checkpoint.finetune=true dataset.path={}",
                at("c"),
                at("own.txt")));
  EXPECT_EQ(bytes.code, 2);
  EXPECT_TRUE(has(bytes.err, "which has a tokenizer")) << bytes.err;
  const Outcome begun =
      weft(text("train checkpoint.load={} checkpoint.finetune=true dataset.path={} "
                "train.train_iters=2 gbs=2 checkpoint.save={} runtime.run_dir={}",
                at("c"),
                ids(),
                at("saved"),
                at("run")));
  ASSERT_EQ(begun.code, 0) << begun.err;
  EXPECT_TRUE(has(begun.out, "ids (indexed): 4000 tokens")) << begun.out;
  const Outcome finished = weft(text("train checkpoint.load={}", at("saved")));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(has(finished.out, "nothing left to do: train.train_iters=2 is reached"))
      << finished.out;
  EXPECT_FALSE(fs::exists("runs/saved")) << "no run folder";
  const Outcome more =
      weft(text("train checkpoint.load={} train.train_iters=3 runtime.run_dir={} --json",
                at("saved"),
                at("more")));
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(Json::parse(more.out).at("first_step"), 2);
  EXPECT_EQ(Json::parse(more.out).at("steps"), 3);
  // Checkpoints of another run.
  const Outcome other =
      weft(text("train tiny ep=1 train.train_iters=1 checkpoint.save={} "
                "runtime.run_dir={}",
                at("saved"),
                at("other")));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "has checkpoints of another run, up to step 2")) << other.err;
}

TEST_F(Kept, APictureIsReplacedWhereTheSameCommandDrewItAndNothingElseIs) {
  const std::string draw = text("schedule tiny --svg={}", at("a.svg"));
  EXPECT_EQ(weft(draw).code, 0);
  EXPECT_EQ(weft(draw).code, 0);
  base::write_whole(at("a.svg"), "<svg>mine</svg>");
  const Outcome refused = weft(draw);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "--overwrite")) << refused.err;
  EXPECT_EQ(base::read_text(at("a.svg")), "<svg>mine</svg>");
  EXPECT_EQ(weft(draw + " --overwrite").code, 0);
  EXPECT_GT(base::read_text(at("a.svg")).size(), 1000u);
}

TEST_F(Kept, APictureOfAnotherCommandIsNotReplaced) {
  const std::string file = at("b.svg");
  const auto refusals = [&](const std::string& command,
                            base::Overwrite overwrite = base::Overwrite::No) {
    return complaints_of([&] { require_picture(file, overwrite, command); }).size();
  };
  EXPECT_EQ(refusals("schedule"), 0u);
  write_picture(file, "<svg>\n<rect class=\"paper\"/>\n</svg>\n", "schedule");
  EXPECT_EQ(base::read_text(file),
            "<!-- drawn by `weft schedule` -->\n<svg>\n<rect class=\"paper\"/>\n</svg>\n");
  EXPECT_EQ(refusals("schedule"), 0u);
  EXPECT_EQ(refusals("memory"), 1u);
  EXPECT_EQ(refusals("bench overlap"), 1u);
  EXPECT_EQ(refusals("memory", base::Overwrite::Yes), 0u);
}

TEST_F(Kept, AFolderThatIsAFileIsWrongInputForCheckAndTrain) {
  base::write_whole(at("file"), "mine");
  for (const char* command : {"train", "check"}) {
    const Outcome refused = weft(text("{} tiny runtime.run_dir={}", command, at("file")));
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_TRUE(has(refused.out + refused.err,
                    "runtime.run_dir: '" + at("file") + "' is a file, not a folder: name another"))
        << refused.out << refused.err;
  }
  for (const std::string& out : {at("file"), at("file/results")}) {
    EXPECT_TRUE(any_names(complaints_of([&] { require_result_folder(out, std::nullopt); }),
                          {"--out: '" + out + "' is ", "name another folder"}));
  }
  EXPECT_TRUE(any_names(
      complaints_of([&] { data::import_tokens({.files = {}, .prefix = at("file/ids")}); }),
      {"'" + at("file/ids") + "' cannot be written", "is a file"}));
  const Outcome below = weft(text("schedule tiny --svg={}/a.svg", at("file")));
  EXPECT_EQ(below.code, 2) << below.err;
  EXPECT_EQ(base::read_text(at("file")), "mine");
}

TEST_F(Kept, FixesHelp) {
  base::write_whole(at("own.txt"), std::string(4000, 'a'));
  const Outcome world = weft("check tiny world=1");
  EXPECT_TRUE(has(world.out, "use a multiple of 2 ranks, or smaller sizes, as in ep=1"))
      << world.out;
  const Outcome data = weft(text("check tiny --data-path {}", at("own.txt")));
  EXPECT_TRUE(has(data.out, "dataset.kind=text")) << data.out;
  EXPECT_TRUE(has(data.out, "weft data import")) << data.out;
  const Outcome name = weft("check checkpoint.pretrained_checkpoint=" + kGolden + "olmoe_tiny");
  EXPECT_TRUE(name.out.starts_with("olmoe_tiny: ")) << name.out << name.err;
}

}  // namespace kept_test
}  // namespace weft::cli
