#include "weft/kernels/hopper_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weft::kernels::hopper {
namespace hopper_tile_test {

constexpr Card kH200{.is_hopper = true, .multiprocessors = 132, .shared_bytes = kMostSharedBytes};
constexpr Pass kPasses[] = {Pass::Forward, Pass::Dgrad, Pass::Wgrad};

int columns_of_best(Pass pass, std::int64_t n) {
  const TileChoice choice = choose_tile({.pass = pass, .n = n}, kH200);
  return choice.rows[std::size_t(choice.best)].tile.n;
}

TEST(HopperTile, FitsTheSharedMemoryOfItsCard) {
  for (const Pass pass : kPasses) {
    for (const Candidate& candidate : candidates_of(pass)) {
      EXPECT_LE(shared_bytes(pass, candidate.tile), kMostSharedBytes) << to_text(candidate.tile);
    }
  }
}

TEST(HopperTile, IsBestForSomeWidth) {
  for (const Pass pass : kPasses) {
    for (const Candidate& candidate : candidates_of(pass)) {
      bool best = false;
      for (std::int64_t n = 8; n <= 512; n += 8) {
        best = best || columns_of_best(pass, n) == candidate.tile.n;
      }
      EXPECT_TRUE(best) << word(pass) << ", " << to_text(candidate.tile);
    }
  }
}

TEST(HopperTile, WideTilesAreForWidthsThatFillThem) {
  EXPECT_EQ(columns_of_best(Pass::Forward, 1536), 256);
  EXPECT_EQ(columns_of_best(Pass::Dgrad, 2048), 256);
  EXPECT_EQ(columns_of_best(Pass::Dgrad, 768), 256);
  EXPECT_EQ(columns_of_best(Pass::Forward, 384), 192);
  EXPECT_EQ(columns_of_best(Pass::Forward, 1152), 192);
  EXPECT_EQ(columns_of_best(Pass::Forward, 128), 128);
  EXPECT_EQ(columns_of_best(Pass::Dgrad, 64), 128);
  EXPECT_EQ(columns_of_best(Pass::Wgrad, 768), 192);
  EXPECT_EQ(columns_of_best(Pass::Wgrad, 256), 128);
}

// Costs of the widest and the narrowest tile are equal at a ratio of 5 to 6 covered columns.
TEST(HopperTile, BetweenTheWidestAndTheNarrowestCoveredColumnsDecide) {
  for (const Pass pass : kPasses) {
    for (std::int64_t n = 8; n <= 4096; n += 8) {
      const TileChoice choice = choose_tile({.pass = pass, .n = n}, kH200);
      const TileChoice::Row &widest = choice.all().front(), &narrowest = choice.all().back();
      ASSERT_EQ(5 * widest.covered > 6 * narrowest.covered, widest.cost > narrowest.cost) << n;
    }
  }
}

TEST(HopperTile, OfATieTheFirstIsTaken) {
  const TileChoice choice = choose_tile({.pass = Pass::Forward, .n = 1920}, kH200);
  ASSERT_EQ(choice.rows[0].cost, choice.rows[1].cost);
  EXPECT_EQ(choice.best, 0);
}

TEST(HopperTile, OtherCardsRejectEveryTile) {
  const TileChoice choice = choose_tile({.n = 1536}, {.multiprocessors = 132});
  EXPECT_EQ(choice.best, -1);
  for (const TileChoice::Row& row : choice.all()) {
    EXPECT_EQ(row.verdict, TileChoice::Verdict::NoHopper);
  }
}

TEST(HopperTile, ATileThatDoesNotFitIsRejectedAndTheNextTaken) {
  const int largest = shared_bytes(Pass::Forward, kRowTiles[0].tile);
  const TileChoice choice =
      choose_tile({.n = 256},
                  {.is_hopper = true, .multiprocessors = 132, .shared_bytes = largest - 1});
  EXPECT_EQ(choice.rows[0].verdict, TileChoice::Verdict::TooMuchSharedMemory);
  EXPECT_EQ(choice.rows[2].verdict, TileChoice::Verdict::TooMuchSharedMemory);
  EXPECT_EQ(choice.best, 1);
}

TEST(HopperTile, PrintsTheCandidatesWithTheirCosts) {
  const TileDesc desc{.pass = Pass::Forward, .n = 384};
  EXPECT_EQ(to_text(desc, choose_tile(desc, kH200)),
            "forward, 384 columns\n"
            "  128 x 256 x 64, 4 stages: 512 columns covered, 229472 bytes of shared memory, "
            "cost 7680, slower\n"
            "  128 x 192 x 64, 4 stages: 384 columns covered, 196704 bytes of shared memory, "
            "cost 6144, best\n"
            "  128 x 128 x 64, 6 stages: 384 columns covered, 229504 bytes of shared memory, "
            "cost 6912, slower\n");
}

}  // namespace hopper_tile_test
}  // namespace weft::kernels::hopper
