#include "weft/train/log/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/train/places.h"
#include "weft/train/preparation.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

class RunFolders : public ::testing::Test {
 protected:
  RunFolders() : dir_(fs::path(::testing::TempDir()) / base::text("weft_runs_{}", ::getpid())) {
    fs::create_directories(dir_);
    config_.runtime.run_dir = dir_.string();
  }
  ~RunFolders() override { fs::remove_all(dir_); }

  std::string complaint() const {
    try {
      make_run_folder(config_, "a");
    } catch (const base::SystemError& error) {
      return error.what();
    }
    return "";
  }

  std::string input_complaint() const {
    try {
      make_run_folder(config_, "a");
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "";
  }

  fs::path dir_;
  config::Config config_;
};

TEST_F(RunFolders, ASecondRunInTheSameFolderIsRefusedAndHarmsNothing) {
  RunFolder first = make_run_folder(config_, "a");
  first.metrics.append("{}");
  EXPECT_NE(complaint().find("in use by another run"), std::string::npos) << complaint();
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "{}\n");
}

TEST_F(RunFolders, FilesOfAnEarlierRunAreReplacedWithTheWordForItAlone) {
  make_run_folder(config_, "a").metrics.append("{}");
  base::write_whole(dir_ / "trace.json", "[]");
  base::write_whole(dir_ / "notes.txt", "mine");
  const std::string refused = input_complaint();
  EXPECT_NE(refused.find("has metrics.jsonl of another run"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--overwrite"), std::string::npos) << refused;
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "{}\n");
  EXPECT_TRUE(fs::exists(dir_ / "trace.json"));
  make_run_folder(config_, "a", 0, base::Overwrite::Yes);
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "");
  EXPECT_FALSE(fs::exists(dir_ / "trace.json"));
  EXPECT_TRUE(fs::exists(dir_ / "notes.txt"));
  EXPECT_EQ(input_complaint(), "") << "metrics without a line are nothing to lose";
}

// A config.yaml outside a run's folder may be any user's file.
TEST_F(RunFolders, OnlyTheRunThatSavedWhatIsGoneOnFromGivesItsFolder) {
  config_.checkpoint.save = (dir_ / "ckpt").string();
  make_run_folder(config_, "a").metrics.append(R"({"iteration": 1})");
  config::Config on = config_;
  on.checkpoint.load = on.checkpoint.save;
  EXPECT_EQ(run_folder_complaint(on, 1), "");
  on.checkpoint.load = (dir_ / "ckpt/iter_0000001").string();
  EXPECT_EQ(run_folder_complaint(on, 1), "");
  on.checkpoint.load = (dir_ / "other").string();
  EXPECT_NE(run_folder_complaint(on, 1).find("of another run"), std::string::npos);
}

TEST_F(RunFolders, AConfigWithoutMetricsIsNotReplaced) {
  base::write_whole(dir_ / "config.yaml", "mine: true\n");
  EXPECT_NE(input_complaint().find("has config.yaml"), std::string::npos) << input_complaint();
  EXPECT_EQ(base::read_text(dir_ / "config.yaml"), "mine: true\n");
  EXPECT_FALSE(fs::exists(dir_ / "metrics.jsonl")) << "nothing is left behind";
}

// A job killed before its first checkpoint is restarted with the same words.
TEST_F(RunFolders, AJobThatIsStartedAgainKeepsTheMetricsOfTheAttemptBefore) {
  config_.checkpoint.save = config_.checkpoint.load = (dir_ / "saved").string();
  make_run_folder(config_, "a").metrics.append("{\"iteration\":1}");
  make_run_folder(config_, "a").metrics.append("{\"iteration\":1,\"again\":1}");
  make_run_folder(config_, "a");
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "");
  EXPECT_EQ(base::read_text(dir_ / "metrics.1.jsonl"), "{\"iteration\":1}\n");
  EXPECT_EQ(base::read_text(dir_ / "metrics.2.jsonl"), "{\"iteration\":1,\"again\":1}\n");
  config_.checkpoint.save = config_.checkpoint.load = (dir_ / "other").string();
  make_run_folder(config_, "a").metrics.append("{}");
  config_.checkpoint.save = config_.checkpoint.load = (dir_ / "third").string();
  EXPECT_NE(input_complaint(), "") << "another job";
}

TEST_F(RunFolders, LinesOfStepsAfterTheCheckpointAreKept) {
  config_.checkpoint.save = config_.checkpoint.load = (dir_ / "saved").string();
  const std::string first = "{\"iteration\":1}\n", later = "{\"iteration\":2}\n{\"iterat";
  make_run_folder(config_, "a");
  base::write_whole(dir_ / "metrics.jsonl", first + later);
  RunFolder on = make_run_folder(config_, "a", 1);
  EXPECT_EQ(on.kept, dir_ / "metrics.1.jsonl");
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), first);
  EXPECT_EQ(base::read_text(dir_ / "metrics.1.jsonl"), later) << "also a line that was cut short";
  on.metrics.append("{\"iteration\":2,\"again\":1}");
  EXPECT_EQ(drop_later_steps(on, 1), dir_ / "metrics.2.jsonl");
  EXPECT_EQ(base::read_text(dir_ / "metrics.2.jsonl"), "{\"iteration\":2,\"again\":1}\n");
  EXPECT_EQ(drop_later_steps(on, 1), std::nullopt) << "nothing is left to drop";
}

TEST_F(RunFolders, AFolderWithTheNameOfAFileStaysAndIsToldOf) {
  fs::create_directories(dir_ / "trace.json");
  EXPECT_EQ(complaint(), "") << "no trace was asked for";
  config_.runtime.trace = true;
  EXPECT_NE(complaint().find("is a folder"), std::string::npos) << complaint();
  EXPECT_TRUE(fs::is_directory(dir_ / "trace.json"));
  fs::remove(dir_ / "metrics.jsonl");
  fs::create_directories(dir_ / "metrics.jsonl");
  EXPECT_NE(complaint().find("metrics.jsonl"), std::string::npos) << complaint();
  EXPECT_TRUE(fs::is_directory(dir_ / "metrics.jsonl"));
}

TEST(FolderPlaces, WeightsHaveAFolderOfTheirOwn) {
  const fs::path dir = fs::path(::testing::TempDir()) / base::text("weft_own_{}", ::getpid());
  config::Config config;
  config.checkpoint.save_hf = (dir / "hf").string();
  config.runtime.run_dir = (dir / "hf" / "run").string();
  config.checkpoint.save = (dir / "hf" / ".." / "hf").string();
  const std::vector<std::string> complaints = complaints_of([&] { prepare(config); });
  const std::string all = base::text("{}", fmt::join(complaints, "\n"));
  EXPECT_TRUE(any_names(complaints, {"checkpoint.save_hf", "would hold runtime.run_dir"})) << all;
  EXPECT_TRUE(any_names(complaints, {"checkpoint.save_hf", "would hold checkpoint.save"})) << all;
  EXPECT_FALSE(any_names(complaints, {"tensorboard"})) << all;
  EXPECT_FALSE(fs::exists(dir));
}

TEST(FolderPlaces, AFolderThatIsAFileIsNamedWithItsKeyBeforeTheRunStarts) {
  const fs::path dir = fs::path(::testing::TempDir()) / base::text("weft_places_{}", ::getpid());
  fs::create_directories(dir);
  const std::string file = (dir / "file").string(), below = file + "/a";
  base::write_whole(file, "mine");
  config::Config config;
  config.runtime.run_dir = file;
  config.checkpoint.save = below;
  config.checkpoint.save_hf = below;
  config.logger.tensorboard_dir = file;
  const std::vector<std::string> complaints = complaints_of([&] { prepare(config); });
  ASSERT_GE(complaints.size(), 4u);
  EXPECT_EQ(complaints[0],
            base::text("runtime.run_dir: '{}' is a file, not a folder: name another folder", file));
  EXPECT_EQ(complaints[1],
            base::text("checkpoint.save: '{}' is below '{}', which is a file: name another folder",
                       below,
                       file));
  EXPECT_TRUE(complaints[2].starts_with("checkpoint.save_hf: "));
  EXPECT_TRUE(complaints[3].starts_with("logger.tensorboard_dir: "));
  EXPECT_EQ(base::read_text(file), "mine");
  config = {};
  config.runtime.run_dir = (dir / "new/one").string();
  EXPECT_TRUE(complaints_of([&] { require_folders(config); }).empty());
  EXPECT_FALSE(fs::exists(dir / "new"));
  fs::remove_all(dir);
}

}  // namespace
}  // namespace weft::train
