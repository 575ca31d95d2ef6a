// A checkpoint of one layout is a valid state under any other.
#include "weft/train/saves/checkpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "tests/train/saved_state_support.h"
#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/guard/faults.h"
#include "weft/train/saves/save_parts.h"

namespace weft::train {
namespace checkpoints_test {

namespace fs = std::filesystem;
using devices::DeviceKind;

// Widens bf16 to fp32.
std::vector<std::byte> widened(const std::vector<std::byte>& narrow) {
  std::vector<std::byte> wide(2 * narrow.size());
  for (std::size_t i = 0; i < narrow.size(); ++i) wide[i / 2 * 4 + 2 + i % 2] = narrow[i];
  return wide;
}

struct Case {
  std::string name;
  LayoutCase layout;
  bool distributed = false;
  int cp = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& value) { return out << value.name; }

config::Config config_of(const Case& value, const fs::path& folder, base::DType precision) {
  config::Config config = with_layout(deep_config(), value.layout);
  config.model.context_parallel_size = value.cp;
  config.model.params_dtype = precision;
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_enable_expert_bias = true;
  config.model.share_embeddings_and_output_weights = true;
  config.checkpoint.save = config.checkpoint.load = folder.string();
  if (value.distributed) {
    config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
    config.comm_overlap.bucket_size = 700;
  }
  return config;
}

std::vector<Case> cases() {
  return {
      {.name = "one", .layout = {}},
      {.name = "ep2", .layout = {.world = 2, .ep = 2}},
      {.name = "tp2", .layout = {.world = 2, .tp = 2}},
      {.name = "etp2", .layout = {.world = 2, .tp = 2, .etp = 2}},
      {.name = "pp2vpp2ep2", .layout = {.world = 4, .ep = 2, .pp = 2, .vpp = 2}},
      {.name = "cp2", .layout = {.world = 2}, .cp = 2},
      {.name = "dp2distributed", .layout = {.world = 2}, .distributed = true},
      {.name = "pp2distributed", .layout = {.world = 4, .pp = 2}, .distributed = true},
      {.name = "tp2ep2distributed", .layout = {.world = 4, .ep = 2, .tp = 2}, .distributed = true}};
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_cp_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "own");
  }
  ~Checkpoints() override { fs::remove_all(folder_); }

  std::string complaint(const config::Config& config) const {
    try {
      loaded(config);
    } catch (const base::ConfigError& error) {
      return error.what();
    } catch (const base::SystemError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

// Each layout's checkpoint is read under two others, which cut tensors differently.
TEST_F(Checkpoints, WrittenUnderOneLayoutAreReadUnderOthers) {
  const std::vector<Case> all = cases();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto precision = i % 2 == 0 ? base::DType::BF16 : base::DType::F32;
    const Global state = saved(config_of(all[i], folder_, precision), 1);
    for (const std::size_t step : {1, 4}) {
      const Case& other = all[(i + step) % all.size()];
      SCOPED_TRACE(all[i].name + " to " + other.name);
      EXPECT_EQ(loaded(config_of(other, folder_, precision)), state);
    }
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

TEST_F(Checkpoints, GoFromOneDeviceToAnother) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::BF16);
  for (const DeviceKind from : devices::all_devices()) {
    const Global state = saved(config, 1, from);
    for (const DeviceKind to : devices::all_devices()) EXPECT_EQ(loaded(config, to), state);
  }
}

TEST_F(Checkpoints, ReplicasAreWrittenOnceAndSpreadOverRanks) {
  const config::Config config =
      config_of({.name = "", .layout = {.world = 4}}, folder_, base::DType::F32);
  saved(config, 0);
  const checkpoint::Manifest manifest =
      checkpoint::read_manifest(checkpoint::step_folder(folder_, 0));
  ASSERT_EQ(manifest.files.size(), 4u);
  std::uint64_t most = 0, all = 0;
  for (const checkpoint::StoredFile& file : manifest.files) {
    most = std::max(most, file.bytes - file.header_bytes);
    all += file.bytes - file.header_bytes;
  }
  std::uint64_t held = 0;
  for (const auto& [name, state] : manifest.states) {
    EXPECT_EQ(state.slices.size(), 1u) << name;
    held +=
        static_cast<std::uint64_t>(state.shape.elements()) * checkpoint::element_bytes(state.dtype);
  }
  EXPECT_EQ(all, held);
  EXPECT_LT(static_cast<double>(most), 0.3 * static_cast<double>(all));
}

TEST_F(Checkpoints, AFlippedBitOrAMissingEndIsFoundAndNamed) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  saved(config, 0);
  const fs::path step = checkpoint::step_folder(folder_, 0);
  for (const char* name : {"rank_0.safetensors", "rank_1.safetensors", "manifest.json"}) {
    const std::string whole = base::read_text(step / name);
    for (const std::size_t byte : {std::size_t{20}, whole.size() / 2, whole.size() - 5}) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ 1);
      base::write_whole(step / name, damaged);
      EXPECT_NE(complaint(config).find(name), std::string::npos) << name << " byte " << byte;
    }
    for (const std::size_t bytes : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      base::write_whole(step / name, whole.substr(0, bytes));
      EXPECT_NE(complaint(config).find(name), std::string::npos) << name << " cut at " << bytes;
    }
    base::write_whole(step / name, whole);
  }
  fs::remove(step / "rank_1.safetensors");
  EXPECT_NE(complaint(config).find("rank_1.safetensors"), std::string::npos);
}

TEST_F(Checkpoints, OfAnotherModelAreRefusedWithBothNumbers) {
  config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  saved(config, 0);
  config.model.hidden_size = 32;
  EXPECT_NE(complaint(config).find("F32 (64, 16), and this run's is F32 (64, 32)"),
            std::string::npos)
      << complaint(config);
  config.model.hidden_size = 16;
  config.model.params_dtype = base::DType::BF16;
  EXPECT_NE(complaint(config).find("is F32 (16), and this run's is BF16 (16)"), std::string::npos)
      << complaint(config);
  config.model.params_dtype = base::DType::F32;
  config.rng.seed += 1;
  EXPECT_NE(complaint(config).find("rng.seed"), std::string::npos);
  config.rng.seed -= 1;
  config.model.num_layers = 6;
  config.model.moe_layer_freq = {1, 0, 1, 1, 1, 0};
  for (const bool finetune : {false, true}) {
    config.checkpoint.finetune = finetune;
    if (finetune) config.checkpoint.save.clear();
    EXPECT_NE(complaint(config).find("it has 8 layers, and this run has model.num_layers=6"),
              std::string::npos)
        << complaint(config);
  }
}

// Weights come from the checkpoint, also under another layout and dtype; everything else starts
// anew.
TEST_F(Checkpoints, FinetuningTakesTheWeightsAndNothingElse) {
  using enum base::DType;
  const Case writer = cases()[8], reader = cases()[4];
  const Global state = saved(config_of(writer, folder_, BF16), 2);
  for (const base::DType precision : {BF16, F32}) {
    config::Config config = config_of(reader, folder_, precision);
    config.checkpoint.save.clear();
    config.checkpoint.finetune = true;
    config.rng.seed += 1;
    const std::optional<Resumption> from = find_resumption(config);
    ASSERT_TRUE(from.has_value());
    Global all;
    std::mutex mutex;
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      load_checkpoint(engine, progress, *from);
      EXPECT_EQ(progress.step() + progress.samples(), 0);
      put(engine, progress, all, mutex);
    });
    for (const auto& [name, values] : all) {
      const std::string parameter = name.substr(name.find('/') + 1);
      if (name.starts_with("optimizer.moment")) {
        EXPECT_EQ(values, std::vector<std::byte>(values.size())) << name;
      } else if (name.starts_with("optimizer.master/")) {
        EXPECT_EQ(values, widened(all.at("weights/" + parameter))) << name;
      } else if (name.starts_with("weights/")) {
        const bool is_same = values.size() == state.at(name).size();
        EXPECT_EQ(values, is_same ? state.at(name) : widened(state.at(name))) << name;
        EXPECT_EQ(is_same, precision == BF16 || parameter.ends_with("route.bias")) << name;
      }
    }
  }
}

TEST_F(Checkpoints, AFinetuningRunThatHasSavedGoesOnFromThere) {
  config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  const fs::path own = folder_ / "own";
  config.checkpoint.finetune = true;
  config.checkpoint.save = own.string();
  EXPECT_NE(complaint(config).find("has no checkpoint"), std::string::npos);
  config.checkpoint.finetune = false;
  config.checkpoint.save = folder_.string();
  saved(config, 0);
  config.checkpoint.finetune = true;
  config.checkpoint.save = own.string();
  const std::optional<Resumption> first = find_resumption(config);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->loads, Loads::Weights);
  EXPECT_EQ(first->note, "");
  const Global state = saved(config, 1);
  const std::optional<Resumption> second = find_resumption(config);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->folder, checkpoint::step_folder(own, 1));
  EXPECT_NE(second->note.find(own.string()), std::string::npos);
  EXPECT_EQ(loaded(config), state);
}

// Weights, step and data continue; the optimizer starts anew and counts from there.
TEST_F(Checkpoints, WithoutLoadOptimTheOptimizerBeginsAnew) {
  config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  const Global state = saved(config, 2);
  config = config_of(cases()[6], folder_, base::DType::F32);  // another layout
  config.checkpoint.save = (folder_ / "own").string();
  config.checkpoint.load_optim = false;
  const Global all = loaded(config);
  for (const auto& [name, values] : all) {
    if (name.starts_with("optimizer.moment")) {
      EXPECT_EQ(values, std::vector<std::byte>(values.size())) << name;
    } else if (name != Progress::kOptimizerBeginName) {
      EXPECT_EQ(values, state.at(name)) << name;
    }
  }
  EXPECT_EQ(all.at(Progress::kOptimizerBeginName), state.at("progress/step"));
  const std::optional<Resumption> from = find_resumption(config);
  ASSERT_TRUE(from.has_value());
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    load_checkpoint(engine, progress, *from);
    EXPECT_NE(resumption_text(*from, progress).find("its optimizer is left"), std::string::npos);
    EXPECT_EQ(progress.optimizer_begin(), 2);
    EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
  });
  // Checkpoints saved by this run are its own, and are continued.
  const std::optional<Resumption> again = find_resumption(config);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->optimizer, OptimizerFrom::Checkpoint);
  EXPECT_EQ(again->folder.parent_path(), folder_ / "own");
  EXPECT_EQ(loaded(config).at(Progress::kOptimizerBeginName), state.at("progress/step"));
}

// Adam without its loaded state equals Adam of a new run with these weights.
TEST_F(Checkpoints, AnOptimizerThatBeginsAnewCountsFromThere) {
  config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  saved(config, 2);
  config.checkpoint.save.clear();
  std::vector<Global> after;
  for (const bool finetune : {false, true}) {
    config.checkpoint.finetune = finetune;
    config.checkpoint.load_optim = false;
    const std::optional<Resumption> from = find_resumption(config);
    ASSERT_TRUE(from.has_value());
    std::mutex mutex;
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      load_checkpoint(engine, progress, *from);
      const Batch batch = batch_of(engine, 2);
      train_step(engine,
                 {.batch = batch,
                  .step = progress.step(),
                  .learning_rate = 1e-2,
                  .optimizer_begin = progress.optimizer_begin()},
                 exec::Tracing::Off);
      put(engine, progress, after.emplace_back(), mutex);
    });
    std::erase_if(after.back(),
                  [](const auto& each) { return each.first.starts_with("progress/"); });
  }
  EXPECT_EQ(after[0], after[1]);
}

// Older checkpoints, whose optimizer always began with the run.
TEST_F(Checkpoints, OneThatDoesNotSayWhereItsOptimizerBeganIsRead) {
  const config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  Global state = saved(config, 1);
  const fs::path folder = checkpoint::step_folder(folder_, 1);
  checkpoint::Manifest manifest = checkpoint::read_manifest(folder);
  ASSERT_EQ(manifest.states.erase(Progress::kOptimizerBeginName), 1u);
  base::write_whole(folder / checkpoint::kManifestName, checkpoint::manifest_text(manifest));
  EXPECT_EQ(loaded(config), state);
}

TEST_F(Checkpoints, WithoutLoadRngTheSeedIsThatOfTheRun) {
  config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  Global state = saved(config, 1);
  config.rng.seed += 1;
  EXPECT_NE(complaint(config).find("checkpoint.load_rng=false"), std::string::npos);
  config.checkpoint.load_rng = false;
  Global all = loaded(config);
  EXPECT_NE(all.at(Progress::kSeedName), state.at(Progress::kSeedName));
  all.erase(Progress::kSeedName);
  state.erase(Progress::kSeedName);
  EXPECT_EQ(all, state);
}

TEST_F(Checkpoints, OnlyTheMostRecentAreKept) {
  config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  config.checkpoint.most_recent_k = 2;
  fs::create_directories(checkpoint::step_folder(folder_, 9));  // from another run
  std::ofstream(checkpoint::make_step_folder(folder_, 1) / "rank_0.safetensors.1.0.partial") << 1;
  for (const std::int64_t steps : {0, 2, 3}) saved(config, steps);
  EXPECT_EQ(checkpoint::saved_steps(folder_), (std::vector<std::int64_t>{2, 3, 9}));
  EXPECT_EQ(base::read_text(folder_ / checkpoint::kTrackerName), "3\n");
}

TEST_F(Checkpoints, OneThatWasNeverFinishedGivesWayToTheOneBefore) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  const Global state = saved(config, 1);
  saved(config, 2);
  fs::remove(checkpoint::step_folder(folder_, 2) / checkpoint::kManifestName);
  const std::optional<Resumption> from = find_resumption(config);
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->folder, checkpoint::step_folder(folder_, 1));
  EXPECT_NE(from->note.find("step 2"), std::string::npos);
  EXPECT_EQ(loaded(config), state);
}

// A step back that would lose checkpoints is refused; after --overwrite it is not refused again.
TEST_F(Checkpoints, LaterOnesAreNotReplacedByARunThatGoesBack) {
  config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  config.train.train_iters = 9;
  for (const std::int64_t steps : {1, 2, 3}) saved(config, steps);
  const auto said = [&] { return replacement_text(config, find_resumption(config)); };
  EXPECT_EQ(said(), "") << "on from the latest";
  config.checkpoint.ckpt_step = 1;
  EXPECT_NE(said().find("has checkpoints of step 2, 3, which"), std::string::npos) << said();
  EXPECT_NE(said().find("name another folder, or give --overwrite"), std::string::npos) << said();
  config.train.train_iters = 2;
  EXPECT_NE(said().find("of step 2, 3, which"), std::string::npos) << "a restart comes by step 3";
  config.train.train_iters = 9;
  fs::resize_file(checkpoint::step_folder(folder_, 3) / "rank_0.safetensors", 10);
  EXPECT_NE(said().find("of step 2, which"), std::string::npos) << "one that is damaged is no loss";
  config::Config other = config;
  other.checkpoint.save = (folder_ / "other").string();
  EXPECT_EQ(replacement_text(other, find_resumption(other)), "");
  for (const std::int64_t step : {1, 3}) fs::remove_all(checkpoint::step_folder(folder_, step));
  config.checkpoint.ckpt_step = 2;
  checkpoint::write_tracker(folder_, 2);
  fs::copy(checkpoint::step_folder(folder_, 2), checkpoint::step_folder(folder_, 4));
  EXPECT_EQ(said(), "") << "the tracker names it: later ones were left";
}

TEST_F(Checkpoints, GoingBackIsTheStateThatWasSavedAndTrainsOnAsIt) {
  for (const std::size_t which : {1u, 7u, 8u}) {
    const config::Config config = config_of(cases()[which], folder_, base::DType::BF16);
    SCOPED_TRACE(cases()[which].name);
    Global before, after;
    std::mutex mutex;
    std::vector<double> norms(2);  // one more step: after going back, and in a new run
    const auto step = [&](Engine& engine, Progress& progress, std::int64_t data) {
      const Batch batch = batch_of(engine, data);
      const StepTotals totals =
          train_step(engine,
                     {.batch = batch, .step = progress.step(), .learning_rate = 1e-2},
                     exec::Tracing::Off);
      progress.advance(config.train.global_batch_size);
      return totals.gradient_norm;
    };
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      step(engine, progress, 0);
      put(engine, progress, before, mutex);
      EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
      for (const std::int64_t data : {1, 2}) step(engine, progress, data);
      go_back(engine, progress, {.folder = checkpoint::step_folder(folder_, 1)});
      EXPECT_EQ(progress.samples(), 4 * config.train.global_batch_size);
      EXPECT_EQ(progress.not_finite(), 1);
      put(engine, progress, after, mutex);
      const double norm = step(engine, progress, 4);
      if (engine.rank() == 0) norms[0] = norm;
    });
    for (Global* all : {&before, &after}) {
      for (const char* moved : {"progress/samples", "progress/not_finite"}) all->erase(moved);
    }
    EXPECT_EQ(before, after);
    const std::optional<Resumption> from = find_resumption(config);
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      load_checkpoint(engine, progress, *from);
      const double norm = step(engine, progress, 4);
      if (engine.rank() == 0) norms[1] = norm;
    });
    EXPECT_EQ(norms[0], norms[1]);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

TEST_F(Checkpoints, AFolderWithoutAnyIsAStartOnlyWhereTheRunSavesToIt) {
  config::Config config = config_of(cases()[0], folder_, base::DType::F32);
  EXPECT_FALSE(find_resumption(config).has_value());
  config.checkpoint.save.clear();
  EXPECT_THROW(find_resumption(config), base::ConfigError);
  base::write_whole(folder_ / checkpoint::kTrackerName, "../../etc");
  EXPECT_THROW(find_resumption(config), base::ConfigError);
}

// New shards lie beside those that they replace, until their manifest takes its place.
TEST_F(Checkpoints, OneThatIsWrittenAgainStaysUntilTheNewOneIsWhole) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  const Global state = saved(config, 1);
  const fs::path step = checkpoint::step_folder(folder_, 1);
  const fs::path obstacle = step / "rank_0.2.safetensors";
  fs::create_directories(obstacle / "which is no file");
  const auto save_again = [&] {
    std::optional<std::string> failure;
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      progress.advance(config.train.global_batch_size);
      const SavePlace place(engine, progress);
      const std::optional<std::string> end = save_checkpoint(engine, progress);
      if (engine.rank() != 0) return;
      failure = end;
      EXPECT_EQ(place.is_written(), !end.has_value());
    });
    return failure;
  };
  EXPECT_TRUE(save_again().has_value());
  EXPECT_TRUE(loaded(config) == state);
  fs::remove_all(obstacle);
  EXPECT_EQ(save_again(), std::nullopt);
  EXPECT_FALSE(loaded(config) == state);
  EXPECT_TRUE(fs::exists(obstacle));
  EXPECT_FALSE(fs::exists(step / checkpoint::shard_name(0)));
  EXPECT_EQ(save_again(), std::nullopt);  // the plain names are free again
  EXPECT_FALSE(fs::exists(obstacle));
}

TEST_F(Checkpoints, AFolderThatVanishedIsNotMadeAnew) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  on_ranks(config, [&](Engine& engine) {
    if (engine.rank() == 0) fs::remove_all(folder_);
    const Progress progress(engine.pool(), config.rng.seed);
    EXPECT_EQ(save_checkpoint(engine, progress).has_value(), engine.rank() == 0);
  });
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Checkpoints, AFolderThatCannotBeWrittenFailsTheSaveAndNotTheRun) {
  const config::Config config = config_of(cases()[1], folder_, base::DType::F32);
  base::write_whole(checkpoint::step_folder(folder_, 0), "a file where the folder would be");
  on_ranks(config, [&](Engine& engine) {
    const Progress progress(engine.pool(), config.rng.seed);
    const std::optional<std::string> failure = save_checkpoint(engine, progress);
    EXPECT_EQ(failure.has_value(), engine.rank() == 0);
  });
}

}  // namespace checkpoints_test
}  // namespace weft::train
