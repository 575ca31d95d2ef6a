#include "weft/base/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::base {
namespace random_test {

TEST(Random, PhiloxMatchesThePublishedVectors) {
  EXPECT_EQ(philox(0, 0, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<std::uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(Random, PermuteIsABijection) {
  for (const std::uint64_t size : {1u, 2u, 3u, 17u, 64u, 1000u}) {
    std::vector<int> seen(size, 0);
    for (std::uint64_t i = 0; i < size; ++i) ++seen[permute(7, i, size)];
    for (const int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(Random, NormalsDependOnTheElementNotOnTheCut) {
  std::vector<float> whole(103), parts(103);
  normals(5, 0, whole);
  normals(5, 0, std::span(parts).first(10));
  normals(5, 10, std::span(parts).subspan(10, 1));
  normals(5, 11, std::span(parts).subspan(11));
  EXPECT_EQ(whole, parts);
}

TEST(Random, NormalHasItsMoments) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = normal(3, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

}  // namespace random_test
}  // namespace weft::base
