// A checkpoint written during the run equals one that stops the run.
#include "weft/train/saves/background_saves.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/guard/memory_prediction.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {
namespace background_saves_test {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  LayoutCase layout;
  bool distributed = false, gathers_ahead = false, splits_optimizer = false;
};

std::vector<Case> cases() {
  return {{.name = "one", .layout = {}},
          {.name = "ep2", .layout = {.world = 2, .ep = 2}},
          {.name = "tp2", .layout = {.world = 2, .tp = 2}},
          {.name = "pp2", .layout = {.world = 2, .pp = 2}},
          {.name = "dp2ahead", .layout = {.world = 2}, .distributed = true, .gathers_ahead = true},
          {.name = "pp2vpp2ahead",
           .layout = {.world = 4, .pp = 2, .vpp = 2},
           .distributed = true,
           .gathers_ahead = true,
           .splits_optimizer = true}};
}

class BackgroundSaving : public ::testing::Test {
 protected:
  BackgroundSaving()
      : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_beside_{}", ::getpid())) {
    fs::remove_all(folder_);
    for (const char* name : {"now", "beside"}) fs::create_directories(folder_ / name);
  }
  ~BackgroundSaving() override { fs::remove_all(folder_); }

  config::Config config_of(const Case& value, const char* save) const {
    config::Config config = with_layout(deep_config(), value.layout);
    config.model.params_dtype = base::DType::BF16;
    config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
    config.model.moe_router_enable_expert_bias = true;
    config.checkpoint.save = (folder_ / save).string();
    config.checkpoint.async_save = std::string(save) == "beside";
    if (value.distributed) {
      config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
      config.comm_overlap.bucket_size = 700;
    }
    if (value.gathers_ahead) {
      config.ddp.overlap_grad_reduce = config.ddp.overlap_param_gather = true;
    }
    config.optimizer.overlap_param_gather_with_optimizer_step = value.splits_optimizer;
    return config;
  }

  static void step(Engine& engine, Progress& progress, const checkpoint::Snapshot* snapshot) {
    const Batch batch = batch_of(engine, progress.step());
    train_step(
        engine,
        {.batch = batch, .step = progress.step(), .learning_rate = 1e-2, .snapshot = snapshot},
        exec::Tracing::Off);
    progress.advance(engine.config().train.global_batch_size);
  }

  std::string shard(const char* save, std::int64_t step, int rank) const {
    return base::read_text(checkpoint::step_folder(folder_ / save, step) /
                           checkpoint::shard_name(rank));
  }

  fs::path folder_;
};

// Two steps, a save, and three more steps; the first of these copies the state.
TEST_F(BackgroundSaving, KeepsTheStateOfItsStepWhileOthersChangeIt) {
  for (const Case& value : cases()) {
    SCOPED_TRACE(value.name);
    const config::Config now = config_of(value, "now"), beside = config_of(value, "beside");
    on_ranks(now, [&](Engine& engine) {
      Progress progress(engine.pool(), now.rng.seed);
      for (int i = 0; i < 2; ++i) step(engine, progress, nullptr);
      EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
      for (int i = 0; i < 3; ++i) step(engine, progress, nullptr);
      EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
    });
    on_ranks(beside, [&](Engine& engine) {
      Progress progress(engine.pool(), beside.rng.seed);
      BackgroundSaves saves(engine, progress);
      for (int i = 0; i < 2; ++i) step(engine, progress, saves.due());
      saves.begin();
      std::optional<EndedSave> end;
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(saves.due() != nullptr, i == 0);
        step(engine, progress, saves.due());
        if (const auto seen = saves.look()) end = seen;
      }
      if (const auto seen = saves.finish()) end = seen;
      EXPECT_EQ(end.has_value(), engine.rank() == 0);
      EXPECT_EQ(end ? end->failure : std::nullopt, std::nullopt);
      // A save without a step before it.
      saves.begin();
      EXPECT_EQ(saves.finish().has_value(), engine.rank() == 0);
    });
    for (const std::int64_t step : {2, 5}) {
      for (int rank = 0; rank < value.layout.world; ++rank) {
        EXPECT_EQ(shard("beside", step, rank), shard("now", step, rank)) << step << " " << rank;
      }
      EXPECT_EQ(checkpoint::read_manifest(checkpoint::step_folder(folder_ / "beside", step)).step,
                step);
    }
    EXPECT_EQ(base::read_text(folder_ / "beside" / checkpoint::kTrackerName), "5\n");
    for (const char* name : {"now", "beside"}) {
      fs::remove_all(folder_ / name);
      fs::create_directories(folder_ / name);
    }
  }
}

// A full disk and a vanished folder, while steps run.
TEST_F(BackgroundSaving, AFailedWriteIsToldAndTheNextSaveGoesOn) {
  const config::Config config = config_of(cases()[1], "beside");
  const fs::path save = config.checkpoint.save;
  on_ranks(config, [&](Engine& engine) {
    const bool is_first = engine.rank() == 0;
    Progress progress(engine.pool(), config.rng.seed);
    BackgroundSaves saves(engine, progress);
    const auto saved_with = [&](const auto& disturb) {
      saves.begin();
      if (is_first) {
        const fs::path folder = checkpoint::step_folder(save, progress.step());
        while (!fs::exists(folder)) std::this_thread::yield();
        // the folder is checked once more
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        disturb(folder);
      }
      SaveTalk(engine).gather({0});
      step(engine, progress, saves.due());
      std::optional<EndedSave> end = saves.look();
      EXPECT_FALSE(end.has_value());
      end = saves.finish();
      EXPECT_EQ(end.has_value(), is_first);
      return end ? end->failure.value_or("") : "";
    };
    const auto nothing = [](const fs::path&) {};
    EXPECT_EQ(saved_with(nothing), "");
    const std::string full = saved_with([](const fs::path& folder) {
      fs::create_symlink("/dev/full", folder / checkpoint::shard_name(1));
    });
    const std::string gone = saved_with([](const fs::path& folder) { fs::remove_all(folder); });
    EXPECT_EQ(saved_with(nothing), "");
    if (!is_first) return;
    EXPECT_NE(full.find("the checkpoint of step 1: rank 1: "), std::string::npos) << full;
    EXPECT_NE(full.find("No space left on device"), std::string::npos) << full;
    EXPECT_NE(gone.find("the checkpoint of step 2: rank "), std::string::npos) << gone;
  });
  EXPECT_EQ(checkpoint::saved_steps(save), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(base::read_text(save / checkpoint::kTrackerName), "3\n");
}

// A pipe in place of the file blocks the writer until it is read.
TEST_F(BackgroundSaving, StepsGoOnBesideAWriterThatIsHeldUp) {
  const config::Config config = config_of(cases()[0], "beside");
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    BackgroundSaves saves(engine, progress);
    saves.begin();
    const fs::path pipe =
        checkpoint::step_folder(config.checkpoint.save, 0) / checkpoint::shard_name(0);
    while (!fs::exists(pipe.parent_path())) std::this_thread::yield();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (int i = 0; i < 4; ++i) {
      step(engine, progress, saves.due());
      EXPECT_FALSE(saves.look().has_value());
    }
    std::thread reader([&] {
      std::ifstream in(pipe);
      std::string all(std::istreambuf_iterator<char>(in), {});
      EXPECT_GT(all.size(), 1000u);
    });
    const std::optional<EndedSave> end = saves.finish();
    reader.join();
    ASSERT_TRUE(end.has_value());
    EXPECT_TRUE(end->failure.has_value());  // a pipe stores no content
  });
}

TEST_F(BackgroundSaving, ARunThatEndsInTheMiddleLeavesTheOneBefore) {
  const config::Config config = config_of(cases()[1], "beside");
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    BackgroundSaves saves(engine, progress);
    saves.begin();
    saves.finish();
    step(engine, progress, nullptr);
    saves.begin();
    step(engine, progress, saves.due());
    saves.look();
  });
  const auto found = checkpoint::find_checkpoint(config.checkpoint.save);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->folder, checkpoint::step_folder(config.checkpoint.save, 0));
}

TEST_F(BackgroundSaving, TakesTheHostMemoryThatIsPredicted) {
  for (const Case& value : cases()) {
    SCOPED_TRACE(value.name);
    const config::Config config = config_of(value, "beside");
    std::vector<int> ranks;
    for (int rank = 0; rank < value.layout.world; ++rank) ranks.push_back(rank);
    const std::vector<std::size_t> predicted = predict_snapshots(judged(config), ranks);
    on_ranks(config, [&](Engine& engine) {
      const Progress progress(engine.pool(), config.rng.seed);
      const BackgroundSaves saves(engine, progress);
      EXPECT_GT(saves.bytes(), 0u);
      EXPECT_EQ(saves.bytes(), predicted[static_cast<std::size_t>(engine.rank())])
          << "rank " << engine.rank();
    });
  }
}

}  // namespace background_saves_test
}  // namespace weft::train
