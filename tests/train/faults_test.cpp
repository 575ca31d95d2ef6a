// Faults that a long run meets: steps that are not finite, folders that cannot be written.
#include "weft/train/guard/faults.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/saves/checkpoints.h"
#include "weft/train/trainer.h"

namespace weft::train {
namespace faults_test {

namespace fs = std::filesystem;

struct Told {
  TrainResult result;
  std::vector<StepRecord> steps;
  std::string lines;
  std::string error;  // error that ended the run
};

class Faults : public ::testing::Test {
 protected:
  Faults() : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_faults_{}", ::getpid())) {
    fs::create_directories(folder_);
    config_ = with_layout(small_config(), {.world = 2, .ep = 2});
    config_.train.train_iters = 5;
    config_.runtime.run_dir = (folder_ / "run").string();
  }
  ~Faults() override { fs::remove_all(folder_); }

  fs::path saved() const { return folder_ / "saved"; }

  Told run(const std::function<void(const std::string&)>& hear = [](const std::string&) {}) const {
    const std::atomic<bool> stop{false};
    Told told;
    try {
      told.result = train({.config = judged(config_),
                           .name = "test",
                           .stop = &stop,
                           .start = [](const RunStart&) {},
                           .log =
                               [&](const std::string& line) {
                                 told.lines += line + "\n";
                                 hear(line);
                               },
                           .progress = [&](const StepRecord& step) { told.steps.push_back(step); },
                           .overwrite = base::Overwrite::Yes});
    } catch (const base::SystemError& error) {
      told.error = error.what();
    }
    return told;
  }

  static std::vector<double> losses(const Told& told) {
    std::vector<double> all;
    for (const StepRecord& step : told.steps) all.push_back(step.loss);
    return all;
  }

  // One save succeeds; after `spoil` all others fail. The run continues to its end and reports
  // them.
  void expect_only_saves_fail(const std::function<void()>& spoil, const std::string& reason) {
    config_.checkpoint.save = saved().string();
    config_.checkpoint.save_interval = 2;
    bool is_spoilt = false;
    const Told told = run([&](const std::string& line) {
      if (!line.starts_with("saved") || std::exchange(is_spoilt, true)) return;
      spoil();
    });
    EXPECT_EQ(told.error, "");
    EXPECT_TRUE(is_spoilt);
    EXPECT_EQ(told.result.steps, 5);
    ASSERT_EQ(told.result.failures.size(), 1u) << fmt::format("{}", told.result.failures);
    EXPECT_NE(told.result.failures[0].find("2 checkpoints not written"), std::string::npos)
        << told.result.failures[0];
    EXPECT_NE(told.result.failures[0].find(reason), std::string::npos) << told.result.failures[0];
  }

  // The earlier checkpoint is unchanged, and no part of the others remains.
  void expect_first_save_stands(const fs::path& folder) {
    EXPECT_EQ(checkpoint::saved_steps(folder), (std::vector<std::int64_t>{2}));
    config_.checkpoint.load = folder.string();
    ASSERT_TRUE(find_resumption(config_).has_value());
    EXPECT_EQ(find_resumption(config_)->manifest.step, 2);
  }

  fs::path folder_;
  config::Config config_;
};

TEST_F(Faults, AStepThatFailsOnceIsRunAgainToTheSameBits) {
  const std::vector<double> plain = losses(run());
  config_.rerun_state_machine.error_injection_rate = 2;
  config_.rerun_state_machine.rerun_mode = config::RerunMode::ValidateResults;
  const Told told = run();
  EXPECT_EQ(losses(told), plain);
  EXPECT_EQ(told.steps.back().not_finite, 0);
  EXPECT_NE(told.lines.find("training step 4: loss nan, gradient norm nan; run again"),
            std::string::npos)
      << told.lines;
  EXPECT_NE(told.lines.find("an error of the machine"), std::string::npos);
}

TEST_F(Faults, AStepThatFailsEachTimeEndsTheRunOrIsSkipped) {
  config_.rerun_state_machine.error_injection_rate = 3;
  config_.rerun_state_machine.error_injection_type = config::ErrorInjection::PersistentError;
  config_.rerun_state_machine.rerun_mode = config::RerunMode::ValidateResults;
  const Told ended = run();
  EXPECT_NE(ended.error.find("training step 3: made to fail"), std::string::npos) << ended.error;
  EXPECT_EQ(ended.steps.size(), 2u);
  EXPECT_NE(ended.lines.find("so that it is the training"), std::string::npos) << ended.lines;
  config_.rerun_state_machine.check_for_nan_in_loss = false;
  const Told skipped = run();
  EXPECT_EQ(skipped.error, "");
  EXPECT_EQ(skipped.steps.size(), 5u);
  EXPECT_EQ(skipped.steps.back().not_finite, 1);
  EXPECT_EQ(skipped.result.not_finite, 1);
  EXPECT_NE(skipped.lines.find("training step 3 is not finite and is skipped (1 so far)"),
            std::string::npos)
      << skipped.lines;
  std::vector<std::string> told;
  for (const std::string& line :
       base::split(base::read_text(folder_ / "run" / "metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const auto json = base::Json::parse(line);
    told.push_back(fmt::format("{}{}",
                               json.at("skipped_iterations").get<int>(),
                               json.contains("skipped") ? " skipped" : ""));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"0", "0", "1 skipped", "1", "1"}));
}

// Each step is computed twice and changes weights once.
TEST_F(Faults, StepsThatAreComputedTwiceHaveTheBitsOfOne) {
  const std::vector<double> plain = losses(run());
  config_.rerun_state_machine.rerun_mode = config::RerunMode::ReportStats;
  const Told twice = run();
  EXPECT_EQ(losses(twice), plain);
  EXPECT_NE(twice.lines.find("computed  twice: 5 steps; none gave other numbers"),
            std::string::npos)
      << twice.lines;
  config_.rerun_state_machine.error_injection_rate = 4;
  const Told differs = run();
  EXPECT_EQ(losses(differs), plain);
  EXPECT_NE(differs.lines.find("training step 4, computed twice: loss nan"), std::string::npos)
      << differs.lines;
  EXPECT_NE(differs.lines.find("computed  twice: 5 steps; 1 gave other numbers"), std::string::npos)
      << differs.lines;
}

TEST_F(Faults, ARunGoesBackToItsLastCheckpointAndOnBehindTheDataThatFailed) {
  config_.checkpoint.save = saved().string();
  config_.checkpoint.save_interval = 2;
  config_.rerun_state_machine.error_injection_rate = 4;
  config_.runtime.rollbacks = 1;
  const Told told = run();
  EXPECT_EQ(told.error, "");
  EXPECT_EQ(told.result.steps, 5);
  EXPECT_NE(told.lines.find("training step 4 is not finite: back to "), std::string::npos);
  std::vector<std::vector<std::int64_t>> kept;  // step and data
  for (const std::string& line :
       base::split(base::read_text(folder_ / "run" / "metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const auto json = base::Json::parse(line);
    kept.push_back({json.at("iteration"), json.at("consumed_samples").get<std::int64_t>() / 8});
  }
  EXPECT_EQ(kept, (std::vector<std::vector<std::int64_t>>{{1, 1}, {2, 2}, {3, 5}, {4, 6}, {5, 7}}));
  config_.train.train_iters = 9;
  fs::remove_all(saved());
  EXPECT_NE(run().error.find("training step 6: made to fail"), std::string::npos)
      << "the second time is once too often";
}

TEST_F(Faults, WithoutACheckpointThereIsNoWayBack) {
  config_.rerun_state_machine.error_injection_rate = 2;
  config_.runtime.rollbacks = 3;
  EXPECT_NE(run().error.find("training step 2: made to fail"), std::string::npos);
}

TEST_F(Faults, ARunWhoseTimeIsUpSavesAndEnds) {
  config_.checkpoint.save = saved().string();
  config_.train.exit_duration_in_mins = 1e-6;
  const Told told = run();
  EXPECT_EQ(told.result.steps, 1);
  EXPECT_FALSE(told.result.interrupted);
  EXPECT_NE(told.lines.find("train.exit_duration_in_mins"), std::string::npos) << told.lines;
  EXPECT_EQ(told.result.checkpoint, checkpoint::step_folder(saved(), 1));
}

TEST_F(Faults, AFolderThatVanishesStopsNothingButSaves) {
  const fs::path elsewhere = folder_ / "elsewhere";
  expect_only_saves_fail(
      [&] {
        fs::rename(saved(), elsewhere);
        base::write_whole(saved(), "no folder");
      },
      "cannot make");
  expect_first_save_stands(elsewhere);
}

// A file size limit acts as a full disk: the first bytes are written, then an error follows.
TEST_F(Faults, AFullDiskStopsNothingButSaves) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  expect_only_saves_fail(
      [&] {
        const rlimit little{.rlim_cur = 16 << 10, .rlim_max = before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
      },
      "safetensors");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  expect_first_save_stands(saved());
}

TEST_F(Faults, AReadOnlyFolderStopsNothingButSaves) {
  const uid_t before = ::geteuid();
  expect_only_saves_fail(
      [&] {
        fs::permissions(saved(),
                        fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                            fs::perms::others_exec);
        ASSERT_EQ(::seteuid(before == 0 ? 65534 : before), 0);  // root may write everywhere
      },
      "Permission denied");
  ASSERT_EQ(::seteuid(before), 0);
  fs::permissions(saved(), fs::perms::owner_all);
  expect_first_save_stands(saved());
}

// A file is in the place of step 4's folder.
TEST_F(Faults, TheOnlyWholeCheckpointOutlivesASaveThatFails) {
  for (const bool beside : {false, true}) {
    fs::remove_all(saved());
    config_.checkpoint = {.save = saved().string(),
                          .save_interval = 2,
                          .most_recent_k = 1,
                          .async_save = beside};
    config_.train.train_iters = 2;
    EXPECT_EQ(run().error, "");
    base::write_whole(checkpoint::step_folder(saved(), 4), "no folder");
    config_.checkpoint.load = saved().string();
    config_.train.train_iters = 4;
    const Told told = run();
    EXPECT_EQ(told.error, "");
    ASSERT_EQ(told.result.failures.size(), 1u) << told.lines;
    ASSERT_TRUE(find_resumption(config_).has_value()) << beside;
    EXPECT_EQ(find_resumption(config_)->manifest.step, 2) << beside;
  }
}

// State after a kill between the last manifest and the tracker, with no steps left.
TEST_F(Faults, AStartThatHasNothingToDoLeavesATrackerThatNamesWhatIsThere) {
  config_.checkpoint.save = saved().string();
  config_.checkpoint.save_interval = 2;
  config_.train.train_iters = 4;
  EXPECT_EQ(run().error, "");
  checkpoint::write_tracker(saved(), 2);
  config_.checkpoint.load = saved().string();
  config_.checkpoint.most_recent_k = 1;
  EXPECT_EQ(run().error, "");
  EXPECT_EQ(checkpoint::saved_steps(saved()), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(base::read_text(saved() / checkpoint::kTrackerName), "4\n");
  EXPECT_EQ(find_resumption(config_)->manifest.step, 4);
}

}  // namespace faults_test
}  // namespace weft::train
