#include "weft/checkpoint/run_reads.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft::checkpoint {
namespace run_reads_test {

struct Reads {
  std::vector<float> values;
  int count = 0;
  std::int64_t elements = 0, most = 0;
};

// Reads a tensor whose elements equal their index.
Reads read(const tensor::Slice& slice) {
  Reads reads;
  const std::vector<tensor::Run> runs = tensor::runs_of(slice);
  reads.values.resize(static_cast<std::size_t>(slice.elements.count));
  read_runs(runs, reads.values, [&](std::int64_t begin, std::span<float> out) {
    std::iota(out.begin(), out.end(), static_cast<float>(begin));
    ++reads.count;
    reads.elements += std::ssize(out);
    reads.most = std::max<std::int64_t>(reads.most, std::ssize(out));
  });
  std::vector<float> expected;
  for (const tensor::Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      expected.push_back(static_cast<float>(run.global + i));
    }
  }
  EXPECT_EQ(reads.values, expected);
  return reads;
}

TEST(RunReads, AreOneWhereRunsAreNear) {
  const Reads reads = read(tensor::slice_of({300, 40}, {{{0, 300}}, {{10, 10}}}));
  EXPECT_EQ(reads.count, 1);
  EXPECT_EQ(reads.elements, 299 * 40 + 10);
}

TEST(RunReads, TakeNothingThatIsFarFromWhatIsWanted) {
  const Reads reads = read(tensor::slice_of({30, 20000}, {{{0, 30}}, {{5000, 5000}}}));
  EXPECT_EQ(reads.count, 30);
  EXPECT_EQ(reads.elements, 30 * 5000);
}

// Two ranks share the columns of an output projection: each reads its half.
TEST(RunReads, OfAWideMatrixTakeOnlyTheColumnsOfARank) {
  const Reads reads = read(tensor::slice_of({64, 4096}, {{{0, 64}}, {{2048, 2048}}}));
  EXPECT_EQ(reads.elements, 64 * 2048);
}

TEST(RunReads, AreBounded) {
  const Reads reads = read(tensor::slice_of({2000, 1000}, {{{0, 2000}}, {{0, 500}}}));
  EXPECT_LE(reads.most, 256 * 1024);
  EXPECT_LE(reads.count, 2000 * 1000 / (255 * 1024) + 1);
}

TEST(RunReads, OfABlockOfRowsAreOneRead) {
  EXPECT_EQ(read(tensor::slice_of({1000, 1000}, {{{500, 500}}, {{0, 1000}}})).count, 1);
}

}  // namespace run_reads_test
}  // namespace weft::checkpoint
