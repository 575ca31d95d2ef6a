#include "weft/train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/file.h"
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

  fs::path dir_;
  config::Config config_;
};

TEST_F(RunFolders, ASecondRunInTheSameFolderIsRefusedAndHarmsNothing) {
  RunFolder first = make_run_folder(config_, "a");
  first.metrics.append("{}");
  EXPECT_NE(complaint().find("in use by another run"), std::string::npos) << complaint();
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "{}\n");
}

TEST_F(RunFolders, FilesOfAnEarlierRunAreReplaced) {
  make_run_folder(config_, "a").metrics.append("{}");
  base::write_whole(dir_ / "trace.json", "[]");
  base::write_whole(dir_ / "notes.txt", "mine");
  make_run_folder(config_, "a");
  EXPECT_EQ(base::read_text(dir_ / "metrics.jsonl"), "");
  EXPECT_FALSE(fs::exists(dir_ / "trace.json"));
  EXPECT_TRUE(fs::exists(dir_ / "notes.txt"));
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
