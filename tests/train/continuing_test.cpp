// Runs that continue a model, and the places that a run writes to.
#include "weft/train/saves/continuing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/train/places.h"
#include "weft/train/preparation.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace continuing_test {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(WEFT_SOURCE_DIR) / "tests/golden";

TEST(Continuing, WhatIsNotChosenSuitsAModelThatIsTrained) {
  config::ModelConfig folder = checkpoint::read_huggingface_config(kGolden / "olmoe_tiny").model;
  folder.params_dtype = base::DType::BF16;
  folder.max_position_embeddings = 40960;
  config::Config config;
  config.dataset.kind = config::DataKind::Indexed;
  config.train.train_iters = 40;
  const IsChosen one = [](std::string_view key) { return key == "train.train_iters"; };
  const std::vector<config::Finding> set = set_continuing(folder, one, config);
  EXPECT_EQ(config.model.params_dtype, base::DType::BF16);
  EXPECT_EQ(config.model.seq_length, 4096);
  EXPECT_EQ(config.model.moe_aux_loss_coeff, folder.moe_aux_loss_coeff);
  EXPECT_EQ(config.train.train_iters, 40);
  EXPECT_DOUBLE_EQ(config.optimizer.lr, 1e-5);
  EXPECT_DOUBLE_EQ(config.optimizer.min_lr, 1e-6);
  EXPECT_EQ(config.scheduler.lr_warmup_iters, 4);
  EXPECT_EQ(config.train.eval_interval, 10);
  for (const config::Finding& finding : set) {
    EXPECT_EQ(finding.id, "D3");
    EXPECT_NE(finding.from, finding.to) << finding.key;
  }
  folder.max_position_embeddings = 64;
  config::Config mock, chosen;
  set_continuing(
      folder,
      [](std::string_view) { return false; },
      mock);
  EXPECT_EQ(mock.model.seq_length, 64);
  EXPECT_EQ(mock.train.eval_interval, 0) << "mock tokens have nothing held out";
  EXPECT_TRUE(set_continuing(
                  folder,
                  [](std::string_view) { return true; },
                  chosen)
                  .empty());
}

class Places : public ::testing::Test {
 protected:
  Places() : dir_(fs::path(::testing::TempDir()) / base::text("weft_places_{}", ::getpid())) {
    fs::create_directories(dir_);
  }
  ~Places() override { fs::remove_all(dir_); }

  std::string put(const fs::path& file, const std::string& content) const {
    fs::create_directories((dir_ / file).parent_path());
    base::write_whole(dir_ / file, content);
    return (dir_ / file).parent_path().string();
  }

  fs::path dir_;
};

TEST_F(Places, OfAnotherRunAreRefusedAllAtOnce) {
  config::Config config;
  config.runtime.run_dir = put("run/metrics.jsonl", "{}\n");
  put("saved/iter_0000003/manifest.json", "whole");
  config.checkpoint.save = (dir_ / "saved").string();
  config.checkpoint.save_hf = put("hf/model.safetensors", "weights");
  EXPECT_EQ(place_complaints(config, std::nullopt, base::Overwrite::No).size(), 3u);
  EXPECT_TRUE(place_complaints(config, std::nullopt, base::Overwrite::Yes).empty());
  // A run that continues these checkpoints may write there again, except for the exported weights.
  const Resumption from{.folder = dir_ / "saved/iter_0000003", .note = "", .manifest = {.step = 3}};
  EXPECT_EQ(place_complaints(config, from, base::Overwrite::No).size(), 2u) << "whose metrics?";
  config.checkpoint.load = config.checkpoint.save;
  put("run/config.yaml", "checkpoint:\n  save: " + config.checkpoint.save + "\n");
  EXPECT_EQ(place_complaints(config, from, base::Overwrite::No).size(), 1u);
  config.train.train_iters = 3;
  EXPECT_TRUE(checkpoint_has_all_steps(config, from));
  EXPECT_TRUE(place_complaints(config, from, base::Overwrite::No).empty()) << "nothing is written";
  Resumption weights = from;
  weights.loads = Loads::Weights;
  EXPECT_FALSE(checkpoint_has_all_steps(config, weights))
      << "a run that begins with weights has no step yet";
}

TEST_F(Places, TheFolderThatARunStartsFromIsNoPlaceToSave) {
  config::Config config;
  config.checkpoint.pretrained_checkpoint = config.checkpoint.save_hf =
      put("hf/model.safetensors", "weights");
  const std::vector<std::string> said = place_complaints(config, std::nullopt, base::Overwrite::No);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("checkpoint.save_hf: '"), std::string::npos) << said.front();
  EXPECT_NE(said.front().find("--overwrite"), std::string::npos) << said.front();
}

TEST_F(Places, APathThatLeadsNowhereIsNotReadAsMockTokens) {
  config::Config config = small_config();
  config.dataset.kind = config::DataKind::Mock;
  config.dataset.path = (dir_ / "none.txt").string();
  const rules::JudgedConfig run = judged(config);
  const std::vector<std::string> said = complaints_of([&] { prepare(run); });
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("neither a file or folder of text"), std::string::npos);
}

TEST_F(Places, BytesAreNoTokensOfAModelWithAVocabularyOfItsOwn) {
  const auto said = [&](const fs::path& folder) {
    config::Config config;
    config.checkpoint.pretrained_checkpoint = folder.string();
    config = with_model_of(config, checkpoint::HuggingFaceModel(folder));
    config.model.seq_length = 8;
    config.dataset.kind = config::DataKind::Text;
    config.dataset.path = (dir_ / "own.txt").string();
    base::write_whole(config.dataset.path, std::string(2000, 'a'));
    const rules::JudgedConfig run = judged(config);
    return complaints_of([&] { prepare(run); });
  };
  const std::vector<std::string> many = said(kGolden / "qwen3_moe_tiny");
  ASSERT_EQ(many.size(), 1u);
  EXPECT_NE(many.front().find("512 tokens"), std::string::npos) << many.front();
  EXPECT_NE(many.front().find("weft data import"), std::string::npos) << many.front();
  EXPECT_TRUE(said(kGolden / "olmoe_tiny").empty()) << "256 tokens and no tokenizer: bytes";
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::create_directories(dir_ / "own");
    fs::copy_file(kGolden / "olmoe_tiny" / name, dir_ / "own" / name);
  }
  put("own/tokenizer.json", "{}");
  EXPECT_EQ(said(dir_ / "own").size(), 1u);
}

}  // namespace continuing_test
}  // namespace weft::train
