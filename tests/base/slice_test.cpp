#include "weft/base/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"

namespace weft::base {
namespace slice_test {

using Runs = std::vector<Run>;

// Elements of a slice, found one by one.
std::vector<std::int64_t> elements_of(const Slice& slice) {
  std::vector<std::int64_t> part;
  for (std::int64_t i = 0; i < slice.global.elements(); ++i) {
    std::int64_t rest = i;
    bool inside = true;
    for (int dim = slice.global.rank(); dim-- > 0;) {
      const std::int64_t index = rest % slice.global[dim];
      rest /= slice.global[dim];
      bool found = false;
      for (const Range& range : slice.dims[static_cast<std::size_t>(dim)]) {
        found = found || (index >= range.begin && index < range.end());
      }
      inside = inside && found;
    }
    if (inside) part.push_back(i);
  }
  return {part.begin() + slice.elements.begin, part.begin() + slice.elements.end()};
}

std::vector<std::int64_t> elements_of(const std::vector<Run>& runs) {
  std::vector<std::int64_t> elements;
  for (const Run& run : runs) {
    EXPECT_EQ(run.local, std::ssize(elements)) << "runs are in the order of the slice";
    for (std::int64_t i = 0; i < run.count; ++i) elements.push_back(run.global + i);
  }
  return elements;
}

TEST(Slice, AllOfATensorIsOneRun) {
  EXPECT_EQ(runs_of(whole_slice({3, 4, 5})), (Runs{{0, 0, 60}}));
}

TEST(Slice, BlocksOfTheFirstDimAreOneRunEach) {
  const Slice slice = slice_of({8, 5}, {{{1, 2}, {5, 2}}, {{0, 5}}});
  EXPECT_EQ(slice.part(), (Shape{4, 5}));
  EXPECT_EQ(runs_of(slice), (Runs{{5, 0, 10}, {25, 10, 10}}));
}

TEST(Slice, BlocksOfTheLastDimAreARunForEachRow) {
  EXPECT_EQ(runs_of(slice_of({3, 8}, {{{0, 3}}, {{2, 3}}})),
            (Runs{{2, 0, 3}, {10, 3, 3}, {18, 6, 3}}));
}

TEST(Slice, RunsAreTheElementsWhateverIsCut) {
  const Shape global{4, 6, 5};
  const std::vector<std::vector<Range>> first{{{0, 4}}, {{1, 2}}, {{0, 1}, {3, 1}}};
  const std::vector<std::vector<Range>> second{{{0, 6}}, {{2, 3}}, {{0, 2}, {3, 2}}};
  const std::vector<std::vector<Range>> third{{{0, 5}}, {{1, 1}}, {{0, 2}, {4, 1}}};
  for (const auto& a : first) {
    for (const auto& b : second) {
      for (const auto& c : third) {
        Slice slice = slice_of(global, {a, b, c});
        EXPECT_EQ(elements_of(runs_of(slice)), elements_of(slice));
        const std::int64_t all = slice.elements.count;
        // An optimizer shard begins and ends anywhere.
        for (std::int64_t begin = 0; begin <= all; begin += 3) {
          for (std::int64_t count = 0; begin + count <= all; count += 5) {
            slice.elements = {.begin = begin, .count = count};
            EXPECT_EQ(elements_of(runs_of(slice)), elements_of(slice));
          }
        }
      }
    }
  }
}

TEST(Slice, WhatLiesInARangeOfTheGlobalTensorIsFound) {
  const Slice slice = slice_of({3, 8}, {{{0, 3}}, {{2, 3}}});
  EXPECT_EQ(runs_in(slice, {.begin = 3, .count = 8}), (Runs{{3, 1, 2}, {10, 3, 1}}));
  EXPECT_TRUE(runs_in(slice, {.begin = 5, .count = 5}).empty());
}

// A single range in the slice too.
TEST(Slice, RangesOfTheGlobalTensorAreRangesOfTheSlice) {
  Slice slice = slice_of({4, 6, 5}, {{{0, 1}, {3, 1}}, {{1, 2}, {5, 1}}, {{0, 2}, {4, 1}}});
  slice.elements = {.begin = 2, .count = slice.elements.count - 3};
  const std::vector<std::int64_t> all = elements_of(slice);
  for (std::int64_t begin = 0; begin < 120; ++begin) {
    for (std::int64_t count = 0; begin + count <= 120; count += 7) {
      std::vector<std::int64_t> found;
      for (const base::Run& run : runs_in(slice, {.begin = begin, .count = count})) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          EXPECT_EQ(all.at(static_cast<std::size_t>(run.local + i)), run.global + i);
          found.push_back(run.global + i);
        }
      }
      const auto first = std::ranges::lower_bound(all, begin);
      const auto end = std::ranges::lower_bound(all, begin + count);
      EXPECT_EQ(found, std::vector<std::int64_t>(first, end));
    }
  }
}

TEST(Slice, RangesThatOverlapOrLeaveTheDimAreABug) {
  EXPECT_THROW(slice_of({4}, {{{0, 2}, {1, 2}}}), base::InternalError);
  EXPECT_THROW(slice_of({4}, {{{2, 3}}}), base::InternalError);
}

}  // namespace slice_test
}  // namespace weft::base
