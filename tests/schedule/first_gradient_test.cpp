// A weight gradient's name tells whether it assigns, in every order.
#include <gtest/gtest.h>

#include <map>

#include "tests/schedule/plans_support.h"
#include "weft/schedule/dependencies.h"

namespace weft::schedule {
namespace first_gradient_test {

// Place of the node without the parts that distinguish gradients of one weight.
Node weights_of(Node node) {
  node.micro_batch = 0;
  node.slice = kNone;
  return node;
}

TEST(FirstGradient, IsOverBeforeAllOthersOfItsWeights) {
  for (const PlanCase& c : some_cases(3)) {
    const std::vector<RankPlan> plans = plans_of(c);
    for (const RankPlan& plan : plans) {
      const Order order(plan.training);
      std::map<Node, int> first;
      for (int i = 0; i < static_cast<int>(plan.training.entries.size()); ++i) {
        const Node& node = plan.training.entries[static_cast<std::size_t>(i)].node;
        if (node.direction != Direction::W) {
          EXPECT_FALSE(begins_gradient(node)) << print(node);
          continue;
        }
        const auto [found, is_new] = first.emplace(weights_of(node), i);
        EXPECT_EQ(begins_gradient(node), is_new) << name(c) << ": " << print(node);
        const bool follows = is_new || order.before(found->second, i);
        EXPECT_TRUE(follows) << name(c) << ": " << print(node);
      }
      EXPECT_FALSE(first.empty()) << name(c);
    }
  }
}

}  // namespace first_gradient_test
}  // namespace weft::schedule
