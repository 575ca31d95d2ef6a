// Newest of a run's checkpoints.
#include "weft/checkpoint/step_folders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"

namespace weft::checkpoint {
namespace step_folders_test {

namespace fs = std::filesystem;
using base::text;

class StepFolders : public ::testing::Test {
 protected:
  StepFolders() : top_(fs::path(::testing::TempDir()) / text("weft_steps_{}", ::getpid())) {
    fs::create_directories(folder_ = top_ / "saved");
  }
  ~StepFolders() override { fs::remove_all(top_); }

  // Writes a step's folder up to its manifest; `what` distinguishes contents.
  void write_step(std::int64_t step, std::int64_t what = 0) const {
    const fs::path made = make_step_folder(folder_, step);
    Manifest manifest{.step = step, .samples = what};
    manifest.follows = tracked_checksum(folder_);
    base::write_whole(made / kManifestName, manifest_text(manifest));
  }
  void save(std::int64_t step, std::int64_t what = 0) const {
    write_step(step, what);
    write_tracker(folder_, step);
  }
  std::string found(std::optional<std::int64_t> step = std::nullopt) const {
    const std::optional<Found> one = find_checkpoint(folder_, step);
    return one ? one->folder.filename().string() : "none";
  }
  std::string complaint(std::optional<std::int64_t> step = std::nullopt) const {
    try {
      return "finds " + found(step);
    } catch (const base::ConfigError& error) {
      return error.what();
    }
  }

  fs::path top_, folder_;
};

TEST_F(StepFolders, ASaveThatEndedBeforeTheTrackerIsTheNewest) {
  write_step(10);
  EXPECT_EQ(found(), "iter_0000010") << "the first has no tracker at all";
  write_tracker(folder_, 10);
  EXPECT_EQ(find_checkpoint(folder_)->note, "");
  write_step(20);
  EXPECT_EQ(found(), "iter_0000020");
  EXPECT_NE(find_checkpoint(folder_)->note.find("names step 10; step 20 was saved after it"),
            std::string::npos);
  write_step(30);  // again
  EXPECT_EQ(found(), "iter_0000030");
  make_step_folder(folder_, 40);
  EXPECT_EQ(found(), "iter_0000030") << "one without a manifest was never finished";
}

TEST_F(StepFolders, WhatARunLeftWhenItWentBackIsNotFoundAgain) {
  for (const std::int64_t step : {10, 20, 30}) save(step);
  EXPECT_EQ(found(10), "iter_0000010");
  save(20, 1);  // by a run that continued from 10
  EXPECT_EQ(found(), "iter_0000020") << "30 follows what 20 was before";
  write_step(25, 1);
  EXPECT_EQ(found(), "iter_0000025");
  write_tracker(folder_, 25);
  save(30, 1);
  EXPECT_EQ(found(), "iter_0000030");
}

TEST_F(StepFolders, ALaterManifestThatIsDamagedIsLeftAsideAndTold) {
  for (const std::int64_t step : {10, 20}) save(step);
  base::write_whole(folder_ / "iter_0000020" / kManifestName, "{}");
  write_tracker(folder_, 10);
  EXPECT_EQ(found(), "iter_0000010");
  EXPECT_NE(find_checkpoint(folder_)->note.find("iter_0000020"), std::string::npos);
}

TEST_F(StepFolders, AnAskedStepIsTakenOrTheStepsThereAreAreNamed) {
  for (const std::int64_t step : {10, 20}) save(step);
  make_step_folder(folder_, 30);
  EXPECT_EQ(found(10), "iter_0000010");
  EXPECT_NE(complaint(30).find("no checkpoint of step 30; it has those of 10, 20"),
            std::string::npos)
      << complaint(30);
  EXPECT_THROW(find_checkpoint(folder_ / "iter_0000010", 10), base::ConfigError);
  EXPECT_NE(way_back(folder_ / "iter_0000020").find("checkpoint.ckpt_step=10"), std::string::npos);
  EXPECT_NE(way_back(folder_ / "iter_0000010").find("no whole checkpoint before it"),
            std::string::npos);
}

TEST_F(StepFolders, ADamagedManifestNamesTheNewestWholeCheckpointBeforeIt) {
  for (const std::int64_t step : {10, 20, 30}) save(step);
  const auto damage = [&](const char* name) {
    const fs::path path = folder_ / name / kManifestName;
    std::string content = base::read_text(path);
    content[content.size() / 2] ^= 1;
    base::write_whole(path, content);
  };
  const auto complaint_of = [&](const char* name) {
    try {
      read_manifest(folder_ / name);
      return std::string("none");
    } catch (const base::ConfigError& error) {
      return std::string(error.what());
    }
  };
  damage("iter_0000030");
  EXPECT_NE(complaint_of("iter_0000030")
                .find(text("the newest whole checkpoint before it: checkpoint.load={} "
                           "checkpoint.ckpt_step=20",
                           folder_.string())),
            std::string::npos)
      << complaint_of("iter_0000030");
  damage("iter_0000020");
  EXPECT_NE(complaint_of("iter_0000030").find("checkpoint.ckpt_step=10"), std::string::npos);
  damage("iter_0000010");
  EXPECT_NE(complaint_of("iter_0000030").find("no whole checkpoint before it"), std::string::npos);
}

TEST_F(StepFolders, ATrackerThatIsNoNumberLeadsNowhere) {
  save(10);
  for (const char* content : {"../../etc", "/etc", "-1", "10/../../x", "1e3", "", "release"}) {
    base::write_whole(folder_ / kTrackerName, content);
    EXPECT_NE(complaint().find(kTrackerName), std::string::npos) << content;
    EXPECT_EQ(tracked_checksum(folder_), std::nullopt) << content;
  }
}

TEST_F(StepFolders, NothingIsWrittenThroughALinkOutOfTheFolder) {
  const fs::path outside = top_ / "outside";
  base::write_whole(outside, "mine");
  fs::create_symlink(outside, folder_ / kTrackerName);
  const fs::path step = make_step_folder(folder_, 10);
  for (const char* name : {"rank_0.safetensors", kManifestName}) {
    fs::create_symlink(outside, step / name);
  }
  fs::create_symlink(top_ / "nowhere", step / "rank_1.safetensors");
  save(10);
  EXPECT_EQ(base::read_text(outside), "mine");
  EXPECT_FALSE(fs::exists(top_ / "nowhere"));
  EXPECT_EQ(base::read_text(folder_ / kTrackerName), "10\n");
  EXPECT_FALSE(fs::exists(step / "rank_0.safetensors"));
}

TEST_F(StepFolders, AFolderThatIsALinkLosesTheLinkAlone) {
  const fs::path outside = top_ / "archive";
  fs::create_directories(outside);
  base::write_whole(outside / kManifestName, "mine");
  const auto linked = [&](const char* name) {
    fs::create_directory_symlink(outside, folder_ / name);
    return folder_ / name;
  };
  const fs::path old = linked("iter_0000002"), again = linked("iter_0000010");
  save(10);
  remove_old_steps(folder_, 10, 1);
  EXPECT_FALSE(fs::exists(fs::symlink_status(old)));
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(again)));
  EXPECT_EQ(base::read_text(outside / kManifestName), "mine");
}

TEST_F(StepFolders, ALockIsWaitedForAndThenRefused) {
  using std::chrono::milliseconds;
  std::optional<base::Descriptor> held = lock_folder(folder_);
  EXPECT_THROW(lock_folder(folder_, milliseconds(60)), base::SystemError);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(80));
    held.reset();
  });
  EXPECT_NO_THROW(lock_folder(folder_));
  other.join();
}

TEST_F(StepFolders, ATrackerThatNamesWhatIsGoneIsSurvived) {
  for (const std::int64_t step : {10, 20}) save(step);
  write_tracker(folder_, 10);
  remove_step(folder_, 10);
  EXPECT_EQ(found(), "iter_0000020");
  EXPECT_NE(find_checkpoint(folder_)->note.find("names step 10, which is gone"), std::string::npos);
  base::write_whole(folder_ / kTrackerName, std::string(100, '1'));
  EXPECT_EQ(tracked_checksum(folder_), std::nullopt) << "too long for a number";
}

}  // namespace step_folders_test
}  // namespace weft::checkpoint
