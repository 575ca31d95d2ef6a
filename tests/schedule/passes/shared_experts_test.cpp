#include "weft/schedule/passes/shared_experts.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"

namespace weft::schedule {
namespace shared_experts_test {

TEST(SharedExperts, RunUnderDispatchAndCombineBothWays) {
  PlanCase c{.layers = "m", .micro_batches = 1, .shared = true};
  const std::vector<std::pair<std::string, std::string>> pairs{{"0F0.shared.fc1", "0F0.dispatch"},
                                                               {"0F0.shared.fc2", "0F0.combine"},
                                                               {"0D0.shared.fc2", "0D0.combine"},
                                                               {"0W0.shared.fc2", "0D0.combine"},
                                                               {"0D0.shared.fc1", "0D0.dispatch"},
                                                               {"0W0.shared.fc1", "0D0.dispatch"}};
  const Graph plain = plans_of(c)[0].training;
  for (const auto& [shared, travels] : pairs) {
    EXPECT_FALSE(run_together(plain, shared, travels)) << shared;
  }
  c.shared_overlap = true;
  for (const int slices : {1, 2}) {
    c.slices = slices;
    const Graph graph = plans_of(c)[0].training;
    for (const auto& [shared, travels] : pairs) {
      // The last slice leaves during the first half, and returns during the second.
      const std::string node = slices == 1 ? travels : travels + "#1";
      EXPECT_TRUE(run_together(graph, shared, node)) << shared;
    }
  }
}

TEST(SharedExperts, InTheInterleavedOrderTheyStayWithTheRouter) {
  const PlanCase c{.layers = "mm",
                   .micro_batches = 2,
                   .overlap = true,
                   .delay = true,
                   .shared = true};
  const Graph graph = plans_of(c)[0].training;
  EXPECT_TRUE(run_together(graph, "0F1.shared.fc1", "1D0.combine"));
  EXPECT_TRUE(run_together(graph, "1W0.shared.fc1", "0D0.combine"))
      << "their weight gradients cover with attention's";
  EXPECT_LT(find(graph, "1D0.attention"), find(graph, "1W0.shared.fc1"));
}

}  // namespace shared_experts_test
}  // namespace weft::schedule
