#include "weft/data/text_files.h"

#include <set>

#include "tests/data/temporary_folder_support.h"
#include "weft/base/error.h"

namespace weft::data {
namespace text_files_test {

namespace fs = std::filesystem;
using config::DataKind;

class TextFiles : public TemporaryFolder {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories((dir_ / name).parent_path());
    base::write_whole(dir_ / name, content);
  }
  std::unique_ptr<Dataset> open(std::vector<std::string> extensions = {}) {
    return open_dataset({.kind = DataKind::Text,
                         .path = dir_.string(),
                         .extensions = std::move(extensions),
                         .eval_fraction = 0},
                        4,
                        256,
                        1);
  }
  // Samples of one epoch, put back in file order.
  static std::string all_text(const Dataset& dataset) {
    std::vector<std::string> samples;
    for (std::uint64_t i = 0; i < dataset.samples(Split::Train); ++i) {
      std::vector<std::int32_t> tokens(5);
      dataset.read(Split::Train, i, tokens);
      samples.emplace_back(tokens.begin(), tokens.end() - 1);
    }
    std::sort(samples.begin(), samples.end());
    std::string all;
    for (const std::string& sample : samples) all += sample;
    return all;
  }
};

TEST_F(TextFiles, FolderIsItsFilesInPathOrder) {
  put("b.txt", "ghijkl");
  put("a/z.txt", "abcd");
  put("a/y.md", "");
  put("a.txt", "ef");
  put("c.txt", "m");
  // "a.txt" sorts before "a/z.txt": paths are compared bytewise.
  const auto files = list_text_files(dir_, {".txt"});
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].filename(), "a.txt");
  EXPECT_EQ(files[1].filename(), "z.txt");
  const auto dataset = open({".txt"});
  EXPECT_EQ(dataset->samples(Split::Train), 3u);
  std::vector<std::int32_t> tokens(5);
  std::set<std::string> samples;
  for (std::uint64_t i = 0; i < 3; ++i) {
    dataset->read(Split::Train, i, tokens);
    samples.emplace(tokens.begin(), tokens.end());
  }
  EXPECT_EQ(samples, (std::set<std::string>{"efabc", "cdghi", "ijklm"}));
}

TEST_F(TextFiles, SamplesRunAcrossFiles) {
  put("1", "ab");
  put("2", "cdefg");
  put("3", "hi");
  EXPECT_EQ(all_text(*open()), "abcdefgh");
}

TEST_F(TextFiles, TextThatIsNotHeldReadsTheSame) {
  put("1", "ab");
  put("2", "cdefg");
  put("3", "");
  put("4", "hi");
  const config::DatasetConfig config{.path = dir_.string(), .eval_fraction = 0};
  const TextDataset held(config, 4, 1), read(config, 4, 1, 0);
  EXPECT_EQ(all_text(read), all_text(held));
  EXPECT_EQ(read.tokens(), 9u);
}

TEST_F(TextFiles, AFileCutWhileItIsReadIsNoMatterOrAnErrorThatNamesIt) {
  put("1", "abcdefghi");
  const config::DatasetConfig config{.path = dir_.string(), .eval_fraction = 0};
  const TextDataset held(config, 4, 1), read(config, 4, 1, 0);
  fs::resize_file(dir_ / "1", 3);
  EXPECT_EQ(all_text(held), "abcdefgh");
  try {
    all_text(read);
    FAIL() << "a file that was cut was read";
  } catch (const base::SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("/1' has 3 bytes, and had 9"), std::string::npos)
        << error.what();
  }
}

TEST_F(TextFiles, LabelsRunOneTokenFurther) {
  put("1", "abcde");
  std::vector<std::int32_t> tokens(5);
  open()->read(Split::Train, 0, tokens);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{'a', 'b', 'c', 'd', 'e'}));
}

TEST_F(TextFiles, BytesAboveAsciiAreTokensBelow256) {
  put("1", "\xff\xfe\x80\x01\xff");
  std::vector<std::int32_t> tokens(5);
  open({"1"})->read(Split::Train, 0, tokens);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{255, 254, 128, 1, 255}));
}

TEST_F(TextFiles, SymbolicLinksAreNotFollowed) {
  put("inside/real.txt", "abcde");
  fs::create_directories(dir_ / "top");
  fs::create_symlink(dir_ / "inside/real.txt", dir_ / "top/link.txt");
  fs::create_directory_symlink(dir_ / "inside", dir_ / "top/folder");
  fs::create_directory_symlink(dir_, dir_ / "top/loop");
  EXPECT_TRUE(list_text_files(dir_ / "top", {}).empty());
}

TEST_F(TextFiles, ExtensionsChooseFiles) {
  put("a.cpp", "abcdefgh");
  put("b.txt", "xxxxxxxx");
  EXPECT_EQ(list_text_files(dir_, {".cpp"}).size(), 1u);
  EXPECT_EQ(list_text_files(dir_, {".cpp", ".txt"}).size(), 2u);
}

TEST_F(TextFiles, ExtensionsThatMatchNothingAreNamedWithTheFix) {
  put("a.cpp", "abcdefgh");
  try {
    open({".rs", ".go"});
    FAIL() << "no file was refused";
  } catch (const base::ConfigError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("1 file,"), std::string::npos) << what;
    EXPECT_NE(what.find("dataset.extensions=[.rs,.go]"), std::string::npos) << what;
    EXPECT_NE(what.find("dataset.extensions=[] to"), std::string::npos) << what;
  }
}

TEST_F(TextFiles, TooLittleTextIsRejected) {
  put("a", "abcd");
  EXPECT_THROW(open(), base::ConfigError);
}

TEST_F(TextFiles, VocabularyOfLessThanAByteIsRejected) {
  put("a", "abcdefgh");
  const config::DatasetConfig config{.kind = DataKind::Text, .path = dir_.string()};
  EXPECT_THROW(open_dataset(config, 4, 255, 1), base::ConfigError);
}

TEST_F(TextFiles, MissingOrEmptyPathIsRejected) {
  EXPECT_THROW(open_dataset({.kind = DataKind::Text}, 4, 256, 1), base::ConfigError);
  EXPECT_THROW(open_dataset({.kind = DataKind::Text, .path = (dir_ / "none").string()}, 4, 256, 1),
               base::ConfigError);
  EXPECT_THROW(open_dataset({.kind = DataKind::Text, .path = "/dev/null"}, 4, 256, 1),
               base::ConfigError);
}

TEST_F(TextFiles, WhatIsNotUtf8IsLeftOutOfAFolderAndSaid) {
  put("a.txt", "abcd");
  put("b.md", "efgh");
  put("c.txt", "i");
  put("weights.safetensors", std::string("\x08\0\0\0", 4) + "zzzz");
  put("latin1.txt", "\xe9t\xe9");
  const auto dataset = open();
  EXPECT_EQ(all_text(*dataset), "abcdefgh");
  EXPECT_EQ(dataset->remark(), "3 files (2 .txt, 1 .md), 2 left out that are not UTF-8");
  EXPECT_EQ(open({".txt"})->remark(), "3 files (3 .txt)") << "endings are named: all are read";
  fs::remove(dir_ / "a.txt");
  fs::remove(dir_ / "b.md");
  fs::remove(dir_ / "c.txt");
  try {
    open();
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("2 files, none of them UTF-8"), std::string::npos)
        << error.what();
  }
}

}  // namespace text_files_test
}  // namespace weft::data
