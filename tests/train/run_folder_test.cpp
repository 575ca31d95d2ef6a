#include "weft/train/log/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

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

// A file called config.yaml in a folder that is no run's may be anybody's.
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

// A job that was killed before its first checkpoint is started again by the same words.
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

}  // namespace
}  // namespace weft::train
