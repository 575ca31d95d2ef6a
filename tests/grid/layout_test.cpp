#include "weft/grid/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/grid/grid.h"

namespace weft::grid {
namespace layout_test {

std::vector<std::string> complaints_of(const Layout& layout) {
  try {
    const Grid grid(layout);
    return {};
  } catch (const base::ConfigError& error) {
    return error.complaints();
  }
}

bool names(const std::string& complaint, std::initializer_list<std::string> parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return complaint.find(part) != std::string::npos;
  });
}

TEST(Layout, AllViolatedConstraintsAreReportedTogether) {
  const auto complaints = complaints_of({.world = 7, .tp = 2, .ep = 4, .num_experts = 6});
  ASSERT_EQ(complaints.size(), 3u);
  EXPECT_TRUE(names(complaints[0], {"world = 7", "tp*cp*pp = 2*1*1 = 2", "multiple of 4"}));
  EXPECT_TRUE(names(complaints[1], {"world = 7", "etp*ep*pp = 1*4*1 = 4"}));
  EXPECT_TRUE(names(complaints[2], {"6 experts", "ep = 4"}));
}

TEST(Layout, EightRanksCannotHoldThirtyTwo) {
  const auto complaints = complaints_of({.world = 8, .pp = 4, .ep = 8});
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(names(complaints[0], {"world = 8", "1*8*4 = 32"}));
}

TEST(Layout, EverySizeOutOfRangeIsNamed) {
  const auto complaints = complaints_of(
      {.world = 0, .tp = -1, .cp = std::numeric_limits<std::int64_t>::max(), .ep = kMaxWorld + 1});
  ASSERT_EQ(complaints.size(), 4u);
  EXPECT_TRUE(names(complaints[0], {"world = 0", "1 to 1048576"}));
  EXPECT_TRUE(names(complaints[1], {"tp = -1"}));
  EXPECT_TRUE(names(complaints[2], {"cp = 9223372036854775807"}));
  EXPECT_TRUE(names(complaints[3], {"ep = 1048577"}));
}

TEST(Layout, ProductsOfLegalSizesDoNotOverflow) {
  const Layout layout{.world = 2, .tp = kMaxWorld, .cp = kMaxWorld, .pp = kMaxWorld};
  EXPECT_FALSE(complaints_of(layout).empty());
  EXPECT_EQ(fewest_ranks(layout), kMaxWorld + 1);
}

TEST(Layout, OrderNotEndingInPipelineNeedsEqualDataSizes) {
  const auto complaints =
      complaints_of({.world = 16, .tp = 2, .pp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"});
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(names(complaints[0], {"dp = 4", "edp = 2", "end the order in pp"}));
  EXPECT_TRUE(complaints_of({.world = 16, .tp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"}).empty());
}

TEST(Layout, PipelinesOfBothViewsMustBeTheSame) {
  // dp = edp = 2, but the pipeline's stride is tp = 4 in one view and etp = 1 in the other.
  const auto complaints =
      complaints_of({.world = 16, .tp = 4, .pp = 2, .ep = 4, .order = "tp-pp-cp-ep-dp"});
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(names(complaints[0], {"different pipelines", "stride 4", "stride 1"}));
}

TEST(Layout, OrderNamesEveryAxisOnce) {
  for (const char* order :
       {"", "tp", "tp-cp-ep-dp", "tp-tp-ep-dp-pp", "tp-cp-ep-dp-pp-pp", "a-b"}) {
    EXPECT_EQ(complaints_of({.world = 1, .order = order}).size(), 1u) << order;
  }
}

TEST(Layout, FewestRanksServeBothViews) {
  EXPECT_EQ(fewest_ranks({.tp = 2, .cp = 2, .pp = 2, .ep = 8}), 16);
  EXPECT_EQ(fewest_ranks({.tp = 2, .ep = 3}), 6);
  EXPECT_EQ(fewest_ranks({}), 1);
  EXPECT_EQ(fewest_ranks({.tp = 0}), kMaxWorld + 1);
}

}  // namespace layout_test
}  // namespace weft::grid
