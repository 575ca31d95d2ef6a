// Existing folders stay unless the user allows their replacement.
#include "weft/checkpoint/new_folder.h"

#include <set>

#include "tests/checkpoint/golden_support.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/checkpoint/huggingface/huggingface_files.h"

namespace weft::checkpoint {
namespace new_folder_test {

namespace fs = std::filesystem;
using base::Overwrite;

class NewFolders : public CheckpointFolder {
 protected:
  void put(const fs::path& file, const std::string& content) const {
    fs::create_directories((dir_ / file).parent_path());
    base::write_whole(dir_ / file, content);
  }
  std::set<std::string> names(const fs::path& folder) const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(dir_ / folder)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }
  fs::path target() const { return dir_ / "out"; }
};

TEST_F(NewFolders, AFolderWithAnythingInItIsRefusedAndUntouched) {
  put("out/mine.txt", "mine");
  const std::string said = complaint([&] { NewFolder folder(target()); });
  EXPECT_TRUE(says(said, "is there already"));
  EXPECT_TRUE(says(said, "--overwrite"));
  EXPECT_EQ(names("."), std::set<std::string>{"out"});
  put("file", "mine");
  EXPECT_TRUE(
      says(complaint([&] { NewFolder folder(dir_ / "file", Overwrite::Yes); }), "is there already"))
      << "a file is no folder of an earlier run";
  EXPECT_TRUE(says(complaint([&] { NewFolder folder(dir_ / "file/out"); }),
                   "'" + (dir_ / "file").string() + "' is a file, not a folder"));
}

TEST_F(NewFolders, TheFolderThatWasThereLeavesItsRights) {
  const auto rights = [](const fs::path& folder) { return fs::status(folder).permissions(); };
  const fs::perms own = fs::perms::owner_all | fs::perms::group_read | fs::perms::set_gid;
  fs::create_directories(target());
  fs::permissions(target(), own);
  {
    NewFolder folder(target());
    EXPECT_EQ(rights(folder.path()), own) << "while it is written too";
    folder.finish();
  }
  EXPECT_EQ(rights(target()), own);
  put("out/model.safetensors", "old");
  {
    NewFolder folder(target(), Overwrite::Yes);
    base::write_whole(folder.path() / "model.safetensors", "new");
    folder.finish();
  }
  EXPECT_EQ(base::read_text(target() / "model.safetensors"), "new");
  EXPECT_EQ(rights(target()), own) << "of one that is replaced too";
}

TEST_F(NewFolders, WithTheWordOnlyWhatBelongsToTheModelGivesWay) {
  put("out/model.safetensors", "old");
  put("out/model-00001-of-00002.safetensors", "old");
  put("out/model.safetensors.index.json", "old");
  put("out/adapter_model.safetensors", "kept");
  put("out/model_before.safetensors", "kept");
  put("out/tokenizer.json", "kept");
  put("out/notes/a.txt", "kept");
  put("out/merges.txt", "old");
  {
    NewFolder folder(target(), Overwrite::Yes, is_of_the_model);
    base::write_whole(folder.path() / "model.safetensors", "new");
    base::write_whole(folder.path() / "merges.txt", "new");
    EXPECT_EQ(base::read_text(target() / "model.safetensors"), "old") << "until it is whole";
    folder.finish();
  }
  EXPECT_EQ(names("out"),
            (std::set<std::string>{"adapter_model.safetensors",
                                   "merges.txt",
                                   "model.safetensors",
                                   "model_before.safetensors",
                                   "notes",
                                   "tokenizer.json"}));
  EXPECT_EQ(base::read_text(target() / "model.safetensors"), "new");
  EXPECT_EQ(base::read_text(target() / "merges.txt"), "new");
  EXPECT_EQ(base::read_text(target() / "notes/a.txt"), "kept");
  EXPECT_EQ(names("."), std::set<std::string>{"out"});
}

TEST_F(NewFolders, WhatIsNotFinishedLeavesTheOldOne) {
  put("out/model.safetensors", "old");
  {
    NewFolder killed(dir_ / "killed");  // contains only the mark of an unfinished folder
    for (const std::string& mark : names("killed.partial")) put("out.partial/" + mark, "");
  }
  put("out.partial/stale.safetensors", "of a killed process");
  {
    NewFolder folder(target(), Overwrite::Yes, is_of_the_model);
    EXPECT_FALSE(fs::exists(folder.path() / "stale.safetensors"));
    base::write_whole(folder.path() / "model.safetensors", "new");
  }
  EXPECT_EQ(base::read_text(target() / "model.safetensors"), "old");
  EXPECT_EQ(names("."), std::set<std::string>{"out"});
}

TEST_F(NewFolders, APartialFolderThatIsTheUsersIsLeftAlone) {
  put("out.partial/notes", "mine");
  EXPECT_THROW(NewFolder folder(target()), base::ConfigError);
  EXPECT_EQ(base::read_text(dir_ / "out.partial/notes"), "mine");
}

TEST_F(NewFolders, TheRootOfAFileSystemIsRefusedBeforeAnyWork) {
  EXPECT_THROW(require_free_folder("/proc", Overwrite::Yes), base::ConfigError);
}

TEST_F(NewFolders, WhatComesMeanwhileStaysAndTheNewOneToo) {
  NewFolder folder(target());
  base::write_whole(folder.path() / "model.safetensors", "new");
  put("out/model.safetensors", "other");
  EXPECT_THROW(folder.finish(), base::SystemError);
  EXPECT_EQ(base::read_text(target() / "model.safetensors"), "other");
  EXPECT_EQ(base::read_text(dir_ / "out.partial/model.safetensors"), "new");
  fs::remove_all(dir_ / "out");
  EXPECT_THROW(NewFolder another(target()), base::ConfigError) << "what is whole is no leftover";
  EXPECT_EQ(base::read_text(dir_ / "out.partial/model.safetensors"), "new");
}

// The real limit is 5 GB; this one gives several files.
TEST_F(NewFolders, LargeWeightsAreSeveralFilesWithAnIndex) {
  const HuggingFaceModel model(golden("qwen3_moe_tiny"));
  const auto fetch = [&](const std::string& parameter, std::int64_t begin, std::span<float> out) {
    model.read(parameter, begin, out);
  };
  constexpr std::uint64_t kMost = 300'000;
  write_huggingface(target(), model.huggingface_config(), fetch, kMost);
  EXPECT_FALSE(fs::exists(target() / "model.safetensors"));
  EXPECT_TRUE(fs::exists(target() / kWeightsIndexName));
  std::size_t files = 0;
  for (const std::string& name : names("out")) {
    if (!name.ends_with(".safetensors")) continue;
    ++files;
    EXPECT_LT(fs::file_size(target() / name), kMost + 20'000) << name;
  }
  EXPECT_GT(files, 1u);
  EXPECT_TRUE(fs::exists(target() / weights_file_name(files - 1, files)));
  const SafetensorsFolder one(golden("qwen3_moe_tiny")), several(target());
  ASSERT_EQ(one.tensor_names(), several.tensor_names());
  for (const std::string& name : one.tensor_names()) {
    EXPECT_EQ(bytes_in(*one.find(name)), bytes_in(*several.find(name))) << name;
  }
}

TEST_F(NewFolders, TokenizersComeAlongAndNothingElseDoes) {
  for (const char* name : {"tokenizer.json",
                           "vocab.json",
                           "generation_config.json",
                           "tokenization_kimi.py",
                           "README.md",
                           "model.safetensors",
                           "config.json"}) {
    put(fs::path("from") / name, name);
  }
  EXPECT_TRUE(has_tokenizer(dir_ / "from"));
  EXPECT_TRUE(holds_weights(dir_ / "from"));
  EXPECT_FALSE(has_tokenizer(golden("qwen3_moe_tiny")));
  fs::create_directories(target());
  copy_text_files(dir_ / "from", target());
  EXPECT_EQ(names("out"),
            (std::set<std::string>{"tokenizer.json",
                                   "vocab.json",
                                   "generation_config.json",
                                   "tokenization_kimi.py"}));
}

}  // namespace new_folder_test
}  // namespace weft::checkpoint
