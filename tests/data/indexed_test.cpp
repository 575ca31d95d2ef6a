#include "weft/data/indexed.h"

#include "tests/data/temporary_folder_support.h"
#include "weft/base/error.h"

namespace weft::data {
namespace indexed_test {

namespace fs = std::filesystem;

const std::string kGolden = std::string(WEFT_SOURCE_DIR) + "/tests/golden/megatron_u16";

class Indexed : public TemporaryFolder {
 protected:
  // Three sequences of 2, 0 and 3 tokens in two documents.
  Indexed() {
    idx_ = std::string("MMIDIDX\0\0", 9);
    add<std::uint64_t>(1);
    add<std::uint8_t>(8);
    add<std::uint64_t>(3);
    add<std::uint64_t>(3);
    for (const std::int32_t length : {2, 0, 3}) add(length);
    for (const std::int64_t offset : {0, 4, 4}) add(offset);
    for (const std::int64_t boundary : {0, 1, 3}) add(boundary);
  }

  template <typename Number>
  void add(Number value) {
    idx_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename Number>
  std::string with(std::size_t at, Number value) const {
    std::string changed = idx_;
    changed.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    return changed;
  }
  static IndexedIndex parse(const std::string& idx, std::uint64_t bin_bytes = 10) {
    return parse_index(std::as_bytes(std::span(idx)), bin_bytes, "small.idx");
  }
  static std::string complaint(const std::string& idx, std::uint64_t bin_bytes = 10) {
    try {
      parse(idx, bin_bytes);
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr std::size_t kLengths = 34, kOffsets = 46, kBoundaries = 70;
  std::string idx_;
};

// Another program read these numbers from the files.
TEST_F(Indexed, ReadsAPairOfMegatronsOwnBuilder) {
  const IndexedDataset dataset({.path = kGolden, .eval_fraction = 0.05}, 64, 512, 1);
  const IndexedIndex& index = dataset.index();
  EXPECT_EQ(index.type(), TokenType::U16);
  EXPECT_EQ(index.sequences(), 40u);
  EXPECT_EQ(index.documents(), 40u);
  EXPECT_EQ(index.tokens(), 5041u);
  EXPECT_EQ(index.length(0), 244);
  EXPECT_EQ(index.length(2), 8);
  EXPECT_EQ(index.length(39), 113);
  EXPECT_EQ(index.boundary(40), 40);
  EXPECT_EQ(dataset.samples(Split::Train), 75u);
  EXPECT_EQ(dataset.samples(Split::Eval), 3u);
  std::vector<std::int32_t> tokens(65);
  dataset.read(Split::Eval, 0, tokens);
  EXPECT_EQ(tokens[0], 160);
  EXPECT_EQ(tokens[1], 44);
  EXPECT_EQ(tokens[2], 6);
  EXPECT_EQ(tokens[3], 242);
}

TEST_F(Indexed, SamplesAreTheTokensOfTheFile) {
  const IndexedDataset dataset({.path = kGolden, .eval_fraction = 0}, 5040, 500, 1);
  std::vector<std::int32_t> tokens(5041);
  dataset.read(Split::Train, 0, tokens);
  EXPECT_EQ(std::vector(tokens.begin(), tokens.begin() + 5),
            (std::vector<std::int32_t>{42, 89, 118, 90, 400}));
  EXPECT_EQ(tokens[244], 66);
  EXPECT_EQ(tokens[3000], 427);
  EXPECT_EQ(tokens[5040], 168);
  std::int64_t sum = 0;
  for (const std::int32_t token : tokens) sum += token;
  EXPECT_EQ(sum, 1242156);
}

TEST_F(Indexed, TokenOutsideTheVocabularyIsNamed) {
  try {
    const IndexedDataset dataset({.path = kGolden, .eval_fraction = 0}, 64, 499, 1);
    FAIL() << "found no earlier than in a sample";
  } catch (const base::ConfigError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("megatron_u16.bin"), std::string::npos);
    EXPECT_NE(what.find("token 311 is id 499"), std::string::npos);
  }
}

TEST_F(Indexed, SmallIndexIsRead) {
  const IndexedIndex index = parse(idx_);
  EXPECT_EQ(index.documents(), 2u);
  EXPECT_EQ(index.tokens(), 5u);
  EXPECT_EQ(parse(idx_ + std::string(3, '\0')).tokens(), 5u) << "with modes";
}

TEST_F(Indexed, EveryTruncationIsRejected) {
  for (std::size_t size = 0; size < idx_.size(); ++size) {
    EXPECT_NE(complaint(idx_.substr(0, size)), "") << size;
  }
}

TEST_F(Indexed, HeaderLiesAreRejected) {
  EXPECT_NE(complaint(with<char>(0, 'X')).find("MMIDIDX"), std::string::npos);
  EXPECT_NE(complaint(with<std::uint64_t>(9, 2)).find("version is 2"), std::string::npos);
  EXPECT_NE(complaint(with<std::uint8_t>(17, 6)).find("floating"), std::string::npos);
  EXPECT_NE(complaint(with<std::uint8_t>(17, 99)).find("99"), std::string::npos);
  for (const std::uint64_t count : {std::uint64_t{4}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    EXPECT_NE(complaint(with(18, count)), "");
    EXPECT_NE(complaint(with(26, count)), "");
  }
  EXPECT_NE(complaint(idx_ + "x"), "");
}

TEST_F(Indexed, LengthAndOffsetLiesAreRejected) {
  EXPECT_NE(complaint(with<std::int32_t>(kLengths, -1)).find("length -1"), std::string::npos);
  EXPECT_NE(complaint(with<std::int32_t>(kLengths + 8, 4)).find("past the 10"), std::string::npos);
  EXPECT_NE(complaint(with<std::int32_t>(kLengths + 8, 0x7fffffff)), "");
  EXPECT_NE(complaint(with<std::int32_t>(kLengths + 8, 2)).find("take 8 bytes"), std::string::npos);
  EXPECT_NE(complaint(with<std::int64_t>(kOffsets + 8, 6)).find("byte 6"), std::string::npos);
  EXPECT_NE(complaint(with<std::int64_t>(kOffsets, -2)), "");
  EXPECT_NE(complaint(idx_, 8), "");
  EXPECT_NE(complaint(idx_, 12), "");
}

TEST_F(Indexed, DocumentBoundariesMustAscendFromZeroToTheEnd) {
  EXPECT_NE(complaint(with<std::int64_t>(kBoundaries, 1)), "");
  EXPECT_NE(complaint(with<std::int64_t>(kBoundaries, -1)), "");
  EXPECT_NE(complaint(with<std::int64_t>(kBoundaries + 8, 4)), "");
  EXPECT_NE(complaint(with<std::int64_t>(kBoundaries + 16, 2)), "");
}

TEST_F(Indexed, SignedTokensAreReadAndNegativeIdsRejected) {
  std::string idx = idx_;
  idx[17] = 2;
  idx[kOffsets + 8] = idx[kOffsets + 16] = 2;
  base::write_whole(dir_ / "i8.idx", idx);
  base::write_whole(dir_ / "i8.bin", std::string("\x01\x02\x03\x04\xff", 5));
  const config::DatasetConfig config{.path = (dir_ / "i8").string(), .eval_fraction = 0};
  EXPECT_THROW(IndexedDataset(config, 3, 256, 1), base::ConfigError) << "a negative id";
  base::write_whole(dir_ / "i8.bin", std::string("\x01\x02\x03\x04\x05", 5));
  const IndexedDataset dataset(config, 4, 256, 1);
  std::vector<std::int32_t> tokens(5);
  dataset.read(Split::Train, 0, tokens);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
}

TEST_F(Indexed, AFileCutWhileItIsReadIsAnError) {
  for (const char* ending : {".idx", ".bin"}) {
    fs::copy_file(kGolden + ending, dir_ / (std::string("cut") + ending));
    fs::permissions(dir_ / (std::string("cut") + ending), fs::perms::owner_all);
  }
  const IndexedDataset dataset({.path = (dir_ / "cut").string(), .eval_fraction = 0}, 64, 512, 1);
  std::vector<std::int32_t> tokens(65);
  dataset.read(Split::Train, 0, tokens);
  fs::resize_file(dir_ / "cut.bin", 0);
  EXPECT_THROW(dataset.read(Split::Train, 0, tokens), base::SystemError);
}

TEST_F(Indexed, AnEndingInThePathIsToldOf) {
  for (const char* ending : {".idx", ".bin"}) {
    try {
      IndexedDataset({.path = kGolden + ending}, 64, 512, 1);
      FAIL();
    } catch (const base::ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("without its ending: dataset.path=" + kGolden),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_F(Indexed, MissingFilesAreSystemErrors) {
  EXPECT_THROW(
      open_dataset({.kind = config::DataKind::Indexed, .path = (dir_ / "no").string()}, 4, 256, 1),
      base::SystemError);
}

}  // namespace indexed_test
}  // namespace weft::data
