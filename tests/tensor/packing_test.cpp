#include "weft/tensor/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::tensor {
namespace packing_test {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Buffers whose memory is free for every stream at once.
Lifetime known(std::size_t bytes, std::int32_t taken, std::int32_t given) {
  return {.bytes = bytes, .taken = taken, .given = given, .known_from = {given}};
}

TEST(Packing, NothingTakesNothing) { EXPECT_EQ(pack({}, {}, 0)->top, 0u); }

TEST(Packing, WhatIsAliveTogetherLiesApartAndTheRestShares) {
  const std::vector<Lifetime> buffers{known(100, 0, 3), known(50, 1, 2), known(100, 4, 5)};
  const Packing packing = pack(buffers, {}, kNoLimit).value();
  EXPECT_EQ(packing.top, 150u);
  EXPECT_EQ(packing.offsets[0], packing.offsets[2]);
}

TEST(Packing, WhatIsOccupiedStaysFree) {
  const std::vector<Lifetime> buffers{known(100, 0, 1)};
  EXPECT_EQ(pack(buffers, std::vector<Extent>{{0, 64}}, kNoLimit)->offsets[0], 64u);
  EXPECT_EQ(pack(buffers, std::vector<Extent>{{100, 64}}, kNoLimit)->offsets[0], 0u);
  EXPECT_EQ(pack(buffers, std::vector<Extent>{{99, 64}}, kNoLimit)->offsets[0], 163u);
}

TEST(Packing, AStreamGetsWhatItMustWaitForOnlyWhereRoomIsShort) {
  Lifetime first{.bytes = 100,
                 .taken = 0,
                 .given = 1,
                 .user = 0,
                 .known_from = {1, Lifetime::kNever}};
  const Lifetime second{.bytes = 100, .taken = 2, .given = 3, .user = 1};
  EXPECT_EQ(pack(std::vector{first, second}, {}, 200)->top, 200u);
  EXPECT_EQ(pack(std::vector{first, second}, {}, 199)->top, 100u);
  first.known_from = {1, 2};
  EXPECT_EQ(pack(std::vector{first, second}, {}, kNoLimit)->top, 100u);
}

TEST(Packing, WhatVariesLiesBesideTheOthersAndKnowsWhichOfThemCome) {
  std::vector<Lifetime> buffers{known(300, 0, 3), known(100, 2, 5), known(200, 4, 6)};
  buffers[0].varies = true;
  const Packing packing = pack(buffers, {}, kNoLimit).value();
  EXPECT_EQ(packing.offsets, (std::vector<std::size_t>{300, 200, 0}));
  ASSERT_EQ(packing.kept[0].size(), 1u);
  EXPECT_EQ(packing.kept[0][0].offset, 200u);
  EXPECT_EQ(packing.kept[0][0].bytes, 100u);
  EXPECT_TRUE(packing.kept[1].empty());
}

// Random knowledge of two streams about each other's buffers; checked by the plain rule.
TEST(Packing, GivesNoStreamWhatItMustWaitForWhereThereIsRoom) {
  std::mt19937 random(11);
  std::vector<Lifetime> buffers;
  for (std::int32_t i = 0; i < 300; ++i) {
    const std::int32_t given = 2 * i + 1 + static_cast<std::int32_t>(random() % 90);
    const auto later = [&] {
      return random() % 4 == 0 ? Lifetime::kNever
                               : given + static_cast<std::int32_t>(random() % 200);
    };
    buffers.push_back({.bytes = 256 * (1 + random() % 9),
                       .taken = 2 * i,
                       .given = given,
                       .user = static_cast<int>(random() % 2),
                       .known_from = {later(), later()}});
  }
  const Packing packing = pack(buffers, {}, kNoLimit).value();
  for (std::size_t late = 0; late < buffers.size(); ++late) {
    for (std::size_t early = 0; early < late; ++early) {
      const auto user = static_cast<std::size_t>(buffers[late].user);
      if (buffers[early].given <= buffers[late].taken &&
          buffers[early].known_from[user] <= buffers[late].taken) {
        continue;
      }
      EXPECT_FALSE(overlap(packing.offsets[late],
                           buffers[late].bytes,
                           packing.offsets[early],
                           buffers[early].bytes))
          << early << " and " << late;
    }
  }
}

TEST(Packing, ALongStepIsPlanned) {
  std::vector<Lifetime> buffers;
  for (std::int32_t i = 0; i < 60000; ++i) {
    const std::int32_t given = 2 * i + 1 + i * 31 % 120;
    buffers.push_back({.bytes = 256u * (1 + static_cast<std::size_t>(i) * 7919 % 64),
                       .taken = 2 * i,
                       .given = given,
                       .user = i % 3 == 0,
                       .known_from = {given, Lifetime::kNever}});
  }
  const std::optional<Packing> packing = pack(buffers, {}, 0);
  ASSERT_TRUE(packing);
  EXPECT_LT(packing->top, 100u * 256 * 64);
}

TEST(Packing, IsRightAndTightForManyBuffers) {
  std::mt19937 random(7);
  std::vector<Lifetime> buffers;
  std::vector<std::int32_t> ends;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    const auto taken = static_cast<std::int32_t>(2 * i);
    const auto length = static_cast<std::int32_t>(1 + random() % 60);
    buffers.push_back(known(256 * (1 + random() % 64), taken, taken + length));
  }
  std::size_t most_alive = 0;
  for (std::int32_t time = 0; time < 2 * kCount; ++time) {
    std::size_t alive = 0;
    for (const Lifetime& buffer : buffers) {
      if (buffer.taken <= time && time < buffer.given) alive += buffer.bytes;
    }
    most_alive = std::max(most_alive, alive);
  }
  const Packing packing = pack(buffers, {}, kNoLimit).value();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (buffers[j].given <= buffers[i].taken) continue;
      EXPECT_FALSE(
          overlap(packing.offsets[i], buffers[i].bytes, packing.offsets[j], buffers[j].bytes))
          << i << " and " << j;
    }
  }
  EXPECT_LE(packing.top, most_alive * 9 / 8);
}

}  // namespace packing_test
}  // namespace weft::tensor
