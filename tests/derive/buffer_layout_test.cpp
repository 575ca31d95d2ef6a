#include "weft/derive/memory/buffer_layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft::derive {
namespace buffer_layout_test {

TEST(BufferLayout, LaysTheLastUsedFirstEachAtAMultipleOf64) {
  const std::vector<BufferItem> items{{100}, {64}, {1}};
  const BufferLayout layout = lay_out(items, {});
  EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{128, 64, 0}));
  EXPECT_EQ(layout.elements, 256);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].items, (std::vector<int>{2, 1, 0}));
}

TEST(BufferLayout, ABucketIsFullWhenItHasAsManyElementsAsAskedFor) {
  const std::vector<BufferItem> items{{300}, {64}, {200}, {64}, {64}};
  const BufferLayout layout = lay_out(items, {.bucket_size = 128});
  ASSERT_EQ(layout.buckets.size(), 3u);
  EXPECT_EQ(layout.buckets[0].items, (std::vector<int>{4, 3}));
  EXPECT_EQ(layout.buckets[1].items, (std::vector<int>{2}));
  EXPECT_EQ(layout.buckets[2].items, (std::vector<int>{1, 0}));
  std::int64_t end = 0;
  for (const Bucket& bucket : layout.buckets) {
    EXPECT_EQ(bucket.elements.begin, end) << "buckets follow each other";
    end = bucket.elements.end();
  }
  EXPECT_EQ(end, layout.elements);
}

TEST(BufferLayout, ABucketHoldsAPortionOfAllAtMostOrOneLargerParameter) {
  const std::vector<BufferItem> items(64, BufferItem{64});
  const auto buckets = [&](const BufferRules& rules) {
    return lay_out(items, rules).buckets.size();
  };
  EXPECT_EQ(buckets({.bucket_size = 1 << 20, .portions = 16}), 16u);
  EXPECT_EQ(buckets({.bucket_size = 128, .portions = 16}), 32u) << "smaller ones stay";
  EXPECT_EQ(buckets({.portions = 16}), 1u) << "nothing is cut";
  EXPECT_EQ(buckets({.buckets = 4}), 4u);
  // 640 elements, at most 160 per bucket: sizes that do not divide.
  const std::vector<BufferItem> uneven{{64}, {64}, {256}, {64}, {64}, {128}};
  const BufferLayout layout = lay_out(uneven, {.bucket_size = 1 << 20, .portions = 4});
  ASSERT_EQ(layout.buckets.size(), 4u);
  EXPECT_EQ(layout.buckets[0].items, (std::vector<int>{5}));
  EXPECT_EQ(layout.buckets[1].items, (std::vector<int>{4, 3}));
  EXPECT_EQ(layout.buckets[2].items, (std::vector<int>{2})) << "larger than a portion";
  EXPECT_EQ(layout.buckets[3].items, (std::vector<int>{1, 0}));
}

TEST(BufferLayout, BucketsThatRanksShareEndWhereAllSharesAreEqual) {
  const std::vector<BufferItem> items{{1000}, {70}, {130}};
  for (const std::int64_t shards : {2, 3, 8, 12}) {
    const BufferLayout layout = lay_out(items, {.bucket_size = 100, .shards = shards});
    for (const Bucket& bucket : layout.buckets) {
      EXPECT_EQ(bucket.elements.count % std::lcm<std::int64_t>(shards, 128), 0);
      std::int64_t end = bucket.elements.begin;
      for (std::int64_t rank = 0; rank < shards; ++rank) {
        EXPECT_EQ(layout.shard(bucket, rank).begin, end);
        end = layout.shard(bucket, rank).end();
      }
      EXPECT_EQ(end, bucket.elements.end());
    }
    for (const std::int64_t offset : layout.offsets) EXPECT_EQ(offset % 64, 0);
  }
}

TEST(BufferLayout, ATiedTableHasABucketOfItsOwn) {
  const std::vector<BufferItem> items{{64, Company::Alone}, {64}, {64}, {64, Company::Alone}, {64}};
  const BufferLayout layout = lay_out(items, {});
  ASSERT_EQ(layout.buckets.size(), 4u);
  EXPECT_EQ(layout.buckets[1].items, (std::vector<int>{3}));
  EXPECT_EQ(layout.buckets[2].items, (std::vector<int>{2, 1}));
  EXPECT_EQ(layout.buckets[3].items, (std::vector<int>{0}));
}

TEST(BufferLayout, OfNothingIsEmpty) {
  const BufferLayout layout = lay_out({}, {.bucket_size = 10, .shards = 4});
  EXPECT_EQ(layout.elements, 0);
  EXPECT_TRUE(layout.buckets.empty());
}

}  // namespace buffer_layout_test
}  // namespace weft::derive
