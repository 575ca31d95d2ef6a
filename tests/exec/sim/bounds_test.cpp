#include "weft/exec/sim/bounds.h"

#include <gtest/gtest.h>

#include "tests/exec/sim/toy_support.h"

namespace weft::exec::sim {
namespace bounds_test {

const char* const kStep =
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "dp reduce.dense\n"
    "ep 0F0.combine\n"
    "host 0F0.sizes\n"
    "compute 0F0.experts < 0F0.dispatch\n";
const ToyStep::CostsNs kCosts{{"0F0.permute", 10},
                              {"0F0.experts@0", 40},
                              {"0F0.experts@1", 25},
                              {"0F0.dispatch", 20},
                              {"0F0.combine", 15},
                              {"reduce.dense", 12},
                              {"0F0.sizes", 500}};

TEST(Bounds, AreThoseOfTheBusiestRankAndLane) {
  ToyStep toy({kStep, kStep}, kCosts);
  const Bounds bounds = bounds_of(toy.step());
  EXPECT_DOUBLE_EQ(bounds.compute_seconds, 50e-9);
  EXPECT_DOUBLE_EQ(bounds.communication_seconds, 35e-9);
  EXPECT_DOUBLE_EQ(bounds.step_seconds(), 50e-9);
}

TEST(Bounds, PriceTheWireOfEachOperationAlone) {
  ToyStep toy({kStep, kStep}, kCosts);
  toy.step().wire = Wire{fabric_of(1, 3), [](const schedule::Node& node, std::span<const int>) {
                           const std::int64_t bytes =
                               node.piece == schedule::Piece::Reduce ? 200 : 50;
                           return std::vector<grid::Transfer>{{0, 1, bytes}};
                         }};
  const Bounds bounds = bounds_of(toy.step());
  EXPECT_DOUBLE_EQ(bounds.compute_seconds, 50e-9);
  EXPECT_DOUBLE_EQ(bounds.communication_seconds, 215e-9);  // dp; ep: 35 + 2 * 53
  EXPECT_LE(bounds.step_seconds(), simulate(toy.step()).step_seconds());
}

}  // namespace bounds_test
}  // namespace weft::exec::sim
