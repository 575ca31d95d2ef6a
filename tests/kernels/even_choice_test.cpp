#include "weft/kernels/cpu/moe/even_choice.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace weft::kernels::cpu {
namespace even_choice_test {

struct Case {
  std::int64_t tokens, k, experts;
  GroupLimit limit = {};
};

class EvenChoice : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Shapes,
                         EvenChoice,
                         testing::Values(Case{64, 2, 8},
                                         Case{64, 8, 128},
                                         Case{24, 3, 8},
                                         Case{16, 8, 8},
                                         Case{32, 4, 16, {.groups = 4, .kept = 2}},
                                         Case{16, 3, 8, {.groups = 4, .kept = 2}}));

TEST_P(EvenChoice, IsAscendingWithinTheGroupsAndEven) {
  const auto [tokens, k, experts, limit] = GetParam();
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(tokens * k), -1);
  choose_evenly(chosen, k, experts, limit);
  std::map<std::int32_t, std::int64_t> counts;
  for (std::int64_t token = 0; token < tokens; ++token) {
    std::set<std::int64_t> groups;
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int32_t expert = chosen[static_cast<std::size_t>(token * k + j)];
      ASSERT_TRUE(expert >= 0 && expert < experts) << expert;
      EXPECT_GT(expert, j == 0 ? -1 : chosen[static_cast<std::size_t>(token * k + j - 1)]);
      groups.insert(expert / (experts / limit.groups));
      ++counts[expert];
    }
    EXPECT_LE(std::ssize(groups), limit.kept);
  }
  const std::int64_t mean = tokens * k / experts;
  for (const auto& [expert, count] : counts) EXPECT_NEAR(double(count), double(mean), 1) << expert;
}

// The first rank gets more than its even share and the last one less, for any number of ranks.
TEST_P(EvenChoice, IsLopsidedWhereThatIsAskedFor) {
  const auto [some, k, experts, limit] = GetParam();
  const std::int64_t tokens = 16 * some;
  if (k == experts) GTEST_SKIP() << "every token has every expert";
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(tokens * k), -1);
  choose_lopsidedly(chosen, k, experts, limit);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ASSERT_TRUE(chosen[i] >= 0 && chosen[i] < experts) << chosen[i];
    const bool is_first = i % static_cast<std::size_t>(k) == 0;
    EXPECT_GT(chosen[i], is_first ? -1 : chosen[i - 1]);
  }
  for (std::int64_t ranks = 2; ranks <= experts; ranks *= 2) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(ranks));
    for (const std::int32_t expert : chosen)
      ++rows[static_cast<std::size_t>(expert / (experts / ranks))];
    EXPECT_GT(rows.front(), tokens * k / ranks) << ranks << " ranks";
    EXPECT_LT(rows.back(), tokens * k / ranks) << ranks << " ranks";
  }
}

}  // namespace even_choice_test
}  // namespace weft::kernels::cpu
