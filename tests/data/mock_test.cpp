#include "weft/data/mock.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/base/error.h"

namespace weft::data {
namespace mock_test {

std::vector<std::int32_t> sample(const Dataset& dataset, Split split, std::uint64_t index) {
  std::vector<std::int32_t> tokens(65);
  dataset.read(split, index, tokens);
  return tokens;
}

std::unique_ptr<Dataset> open_mock(std::int64_t vocab_size, std::uint64_t seed) {
  return open_dataset({.kind = config::DataKind::Mock}, 64, vocab_size, seed);
}

TEST(Mock, SampleDependsOnSeedSplitAndIndexOnly) {
  const auto a = open_mock(256, 1), b = open_mock(256, 1), c = open_mock(256, 2);
  EXPECT_EQ(sample(*a, Split::Train, 5), sample(*b, Split::Train, 5));
  EXPECT_NE(sample(*a, Split::Train, 5), sample(*c, Split::Train, 5));
  EXPECT_NE(sample(*a, Split::Train, 5), sample(*a, Split::Train, 6));
  EXPECT_NE(sample(*a, Split::Train, 5), sample(*a, Split::Eval, 5));
}

TEST(Mock, TokensLieInTheVocabulary) {
  const auto dataset = open_mock(3, 1);
  for (std::uint64_t i = 0; i < 50; ++i) {
    for (const std::int32_t token : sample(*dataset, Split::Train, i)) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 3);
    }
  }
}

TEST(Mock, MostStepsOfASampleRepeatOneStride) {
  const auto dataset = open_mock(512, 1);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto tokens = sample(*dataset, Split::Train, i);
    std::map<int, int> strides;
    for (std::size_t t = 1; t < tokens.size(); ++t) {
      ++strides[(tokens[t] - tokens[t - 1] + 512) % 512];
    }
    int most = 0;
    for (const auto& [stride, count] : strides) most = std::max(most, count);
    EXPECT_GE(most, 40);
  }
}

TEST(Mock, ImpossibleSizesAreRejected) {
  EXPECT_THROW(open_mock(0, 1), base::ConfigError);
  EXPECT_THROW(open_dataset({}, 0, 256, 1), base::ConfigError);
  EXPECT_THROW(open_dataset({}, 64, std::int64_t{1} << 40, 1), base::ConfigError);
}

}  // namespace mock_test
}  // namespace weft::data
