// Named data are the data read.
#include "weft/words/data_words.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/dump.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace data_words_test {

namespace fs = std::filesystem;
using Typed = std::vector<std::string>;

const fs::path kRecipes = WEFT_SOURCE_DIR "/recipes";

class DataWords : public ::testing::Test {
 protected:
  DataWords() : dir_(fs::path(::testing::TempDir()) / base::text("weft_words_{}", ::getpid())) {
    fs::create_directories(dir_);
    put("own.txt", "text\n");
    put("ids.bin", std::string(8, '\0'));
    put("ids.idx", "index");
    put("documents.jsonl", "[1]\n");
    put("picture", std::string(8, '\0'));
  }
  ~DataWords() override { fs::remove_all(dir_); }

  void put(const std::string& name, const std::string& bytes) const {
    base::write_whole(dir_ / name, bytes);
  }
  std::string at(const std::string& name) const { return (dir_ / name).string(); }
  static Resolution resolved(const Typed& words) {
    return resolve_words(kRecipes, words, Audience::Run);
  }
  static DatasetConfig data(const Typed& words) { return resolved(words).config.dataset; }
  static std::string complaint(const Typed& words) {
    return complaints_of([&] { resolved(words); }).front();
  }

  fs::path dir_;
};

TEST_F(DataWords, APathTellsItsKind) {
  EXPECT_EQ(data({"dataset.path=" + at("own.txt")}).kind, DataKind::Text);
  EXPECT_EQ(data({"dataset.path=" + dir_.string()}).kind, DataKind::Text);
  EXPECT_EQ(data({"dataset.path=" + at("ids")}).kind, DataKind::Indexed);
  for (const char* name : {"ids.bin", "ids.idx"}) {
    const DatasetConfig of_file = data({"dataset.path=" + at(name)});
    EXPECT_EQ(of_file.kind, DataKind::Indexed);
    EXPECT_EQ(of_file.path, at("ids"));
  }
  EXPECT_EQ(data({"dataset.blend=[0.3," + at("ids") + ",0.7," + at("ids") + "]"}).kind,
            DataKind::Indexed);
  EXPECT_EQ(data({"dataset.blend_per_split=[[" + at("ids") + "],[],[]]"}).kind, DataKind::Indexed);
  EXPECT_EQ(data({"tiny", "dataset.path=" + at("ids")}).kind, DataKind::Indexed);
  EXPECT_EQ(data({"dataset.path=" + at("picture"), "dataset.kind=text"}).kind, DataKind::Text);
  const Resolution said = resolved({"dataset.path=" + at("own.txt")});
  ASSERT_EQ(said.automatic.size(), 1u);
  EXPECT_EQ(said.automatic.front().id, "D1");
}

TEST_F(DataWords, WhatIsNoTextIsNeverReadAsMockTokens) {
  // train::prepare() complains of a path without a kind.
  const DatasetConfig lost = data({"dataset.path=" + at("none.txt")});
  EXPECT_EQ(lost.path, at("none.txt"));
  EXPECT_EQ(lost.kind, DataKind::Mock);
  for (const char* name : {"documents.jsonl", "picture"}) {
    EXPECT_NE(complaint({"dataset.path=" + at(name)}).find("weft data import"), std::string::npos);
  }
}

TEST_F(DataWords, AWordWinsOverTheRecipe) {
  const DatasetConfig blend = data({"tiny", "dataset.blend=[" + at("ids") + "]"});
  EXPECT_EQ(blend.path, "");
  EXPECT_EQ(blend.blend, std::vector<std::string>{at("ids")});
  EXPECT_EQ(blend.kind, DataKind::Indexed);
  put("blend.yaml", "dataset: {kind: indexed, blend: [a, b], split: \"8,1,1\"}\n");
  const DatasetConfig path = data({at("blend.yaml"), "dataset.path=" + at("own.txt")});
  EXPECT_TRUE(path.blend.empty());
  EXPECT_EQ(path.kind, DataKind::Text);
  const DatasetConfig mock = data({"tiny", "dataset.kind=mock"});
  EXPECT_EQ(mock.kind, DataKind::Mock);
  EXPECT_EQ(mock.path, "");
  const Resolution both = resolved({"dataset.kind=mock", "dataset.path=" + at("own.txt")});
  EXPECT_EQ(both.config.dataset.kind, DataKind::Mock);
  EXPECT_EQ(both.config.dataset.path, "");
  ASSERT_EQ(both.warnings.size(), 1u);
  EXPECT_EQ(both.warnings.front().id, "D2");
}

TEST_F(DataWords, ARecipeWithoutAKindHasTheOneOfItsPath) {
  put("own.yaml", "dataset: {path: " + at("own.txt") + "}\n");
  EXPECT_EQ(data({at("own.yaml")}).kind, DataKind::Text);
}

TEST_F(DataWords, AFolderWithAConfigIsTheModelToContinue) {
  const std::string folder = WEFT_SOURCE_DIR "/tests/golden/qwen3_moe_tiny";
  const Resolution run = resolved({folder, "train.train_iters=3"});
  EXPECT_EQ(run.config.checkpoint.pretrained_checkpoint, folder);
  EXPECT_EQ(run.recipe, "");
  EXPECT_TRUE(run.is_chosen("train.train_iters"));
  EXPECT_FALSE(run.is_chosen("optimizer.lr"));
  EXPECT_TRUE(resolved({"tiny"}).is_chosen("optimizer.lr"));
}

TEST_F(DataWords, TheConfigOfARunFolderGoesByTheNameOfTheRun) {
  for (const char* folder : {"tiny-20261119-200443", "tiny-20261119-200443-2", "tiny"}) {
    fs::create_directories(dir_ / folder);
    base::write_whole(dir_ / folder / "config.yaml", to_yaml(Config()));
    EXPECT_EQ(resolved({at(folder) + "/config.yaml"}).recipe, "tiny");
  }
}

}  // namespace data_words_test
}  // namespace weft::words
