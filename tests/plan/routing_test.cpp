#include "weft/plan/hardware/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace weft::plan {
namespace routing_test {

double mean(const std::vector<double>& loads) {
  return std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
}

TEST(Routing, LoadsHaveTheMeanOneAndFall) {
  for (const std::vector<double>& loads :
       {skewed_loads(0.4, 64), measured_loads({.p50 = 0.9, .p95 = 1.6, .max = 2.4}, 64)}) {
    EXPECT_NEAR(mean(loads), 1, 1e-9);
    EXPECT_TRUE(std::ranges::is_sorted(loads, std::greater<>{}));
  }
  EXPECT_NEAR(measured_loads({.p50 = 0.9, .p95 = 1.6, .max = 2.4}, 512).front(), 2.4, 0.05);
}

TEST(Routing, MoreExpertsOnARankEvenOut) {
  const std::vector<double> loads = skewed_loads(0.4, 128);
  EXPECT_EQ(busiest_rank(loads, 1), 1);
  EXPECT_EQ(busiest_rank(loads, 128), loads.front());
  double before = 1;
  for (const std::int64_t ranks : {2, 8, 32, 128}) {
    const double busiest = busiest_rank(loads, ranks);
    EXPECT_GT(busiest, before) << ranks;
    before = busiest;
  }
  EXPECT_EQ(busiest_rank(skewed_loads(0, 128), 64), 1);
}

config::ModelConfig model_of(std::int64_t ep) {
  config::ModelConfig model;
  model.num_layers = 4;
  model.num_moe_experts = 16;
  model.moe_router_topk = 2;
  model.expert_model_parallel_size = ep;
  return model;
}

TEST(Routing, ALayerIsAsItWasMeasuredAndOthersAsTheMean) {
  Routing routing;
  routing.layers = {{0, {.p50 = 1, .p95 = 1, .max = 1}}, {1, {.p50 = 0.8, .p95 = 1.8, .max = 3}}};
  EXPECT_EQ(imbalance_of(routing, model_of(16), 0), 1);
  const double uneven = imbalance_of(routing, model_of(16), 1);
  EXPECT_GT(uneven, 2);
  const double other = imbalance_of(routing, model_of(16), 3);
  EXPECT_GT(other, 1);
  EXPECT_LT(other, uneven);
  EXPECT_EQ(largest_imbalance(routing, model_of(16)), uneven);
  EXPECT_LT(imbalance_of(routing, model_of(4), 1), uneven);
  config::ModelConfig fixed = model_of(16);
  fixed.moe_expert_capacity_factor = 1.0;
  EXPECT_EQ(imbalance_of(routing, fixed, 1), 1);
}

TEST(Routing, AGivenImbalanceIsThatOfEveryLayout) {
  EXPECT_EQ(imbalance_of({.imbalance = 1.3}, model_of(2), 0), 1.3);
  EXPECT_EQ(imbalance_of({.imbalance = 1.3}, model_of(16), 3), 1.3);
  EXPECT_TRUE(Routing{}.is_even());
}

}  // namespace routing_test
}  // namespace weft::plan
