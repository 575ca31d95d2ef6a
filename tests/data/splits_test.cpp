#include "weft/data/splits.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/sequences_support.h"
#include "tests/data/temporary_folder_support.h"
#include "weft/base/error.h"
#include "weft/data/dataset.h"

namespace weft::data {
namespace splits_test {

using Ranges = std::array<SequenceRange, 3>;

// Python: int(round(sum of normalised shares * sequences)).
TEST(Splits, AreRoundedAsMegatronDoes) {
  EXPECT_EQ(split_ranges(parse_split("969,30,1"), 1000),
            (Ranges{{{0, 969}, {969, 999}, {999, 1000}}}));
  EXPECT_EQ(split_ranges(parse_split("969,30,1"), 50), (Ranges{{{0, 48}, {48, 50}, {50, 50}}}));
  EXPECT_EQ(split_ranges(parse_split("1,1"), 5), (Ranges{{{0, 2}, {2, 5}, {5, 5}}}));
  EXPECT_EQ(split_ranges(parse_split("1,1"), 7), (Ranges{{{0, 4}, {4, 7}, {7, 7}}}));
  EXPECT_EQ(split_ranges(parse_split("100"), 3), (Ranges{{{0, 3}, {3, 3}, {3, 3}}}));
  EXPECT_EQ(split_ranges(parse_split("0.8,0.1,0.1"), 10), (Ranges{{{0, 8}, {8, 9}, {9, 10}}}));
}

TEST(Splits, ThatAreNoneAreRefused) {
  for (const char* text :
       {"1,2,3,4", "a", "", "1,,1", "-1,2", "nan,1", "inf,1", "0,0,0", "1e308,1e308"}) {
    EXPECT_THROW(parse_split(text), base::ConfigError) << text;
  }
}

class SplitData : public TemporaryFolder {
 protected:
  SplitData() { write_sequences(path(), 20, 10); }
  std::string path() const { return (dir_ / "d").string(); }

  std::unique_ptr<Dataset> open(const std::string& split) {
    return open_dataset({.kind = config::DataKind::Indexed, .path = path(), .split = split},
                        4,
                        256,
                        1);
  }
};

std::set<std::int32_t> tokens_of(const Dataset& dataset, Split split) {
  std::set<std::int32_t> all;
  std::vector<std::int32_t> tokens(5);
  for (std::uint64_t i = 0; i < dataset.samples(split); ++i) {
    dataset.read(split, i, tokens);
    all.insert(tokens.begin(), tokens.end());
  }
  return all;
}

TEST_F(SplitData, EachSplitReadsItsOwnSequencesAlone) {
  const auto dataset = open("8,1,1");
  EXPECT_EQ(dataset->samples(Split::Train), 39u);  // (160 - 1) / 4
  EXPECT_EQ(dataset->samples(Split::Eval), 4u);
  EXPECT_EQ(dataset->samples(Split::Test), 4u);
  const std::set<std::int32_t> trained = tokens_of(*dataset, Split::Train);
  EXPECT_EQ(trained.size(), 16u);
  EXPECT_EQ(*trained.rbegin(), 15);
  EXPECT_EQ(tokens_of(*dataset, Split::Eval), (std::set<std::int32_t>{16, 17}));
  EXPECT_EQ(tokens_of(*dataset, Split::Test), (std::set<std::int32_t>{18, 19}));
}

TEST_F(SplitData, AnEmptySplitIsRefusedWhenItIsNeeded) {
  const auto dataset = open("1,0,0");
  EXPECT_EQ(dataset->samples(Split::Eval), 0u);
  std::vector<std::int32_t> tokens(5);
  EXPECT_THROW(dataset->read(Split::Eval, 0, tokens), base::ConfigError);
  EXPECT_THROW(dataset->read(Split::Test, 0, tokens), base::ConfigError);
  EXPECT_THROW(open("0,1,1"), base::ConfigError);
  EXPECT_THROW(open("1,1000"), base::ConfigError);
  EXPECT_THROW(
      open_dataset(
          {.kind = config::DataKind::Text, .path = WEFT_SOURCE_DIR "/LICENSE", .split = "1,1"},
          4,
          256,
          1),
      base::ConfigError);
}

}  // namespace splits_test
}  // namespace weft::data
