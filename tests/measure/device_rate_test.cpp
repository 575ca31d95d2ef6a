#include "weft/measure/device/device_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "weft/measure/device/device_products.h"
#include "weft/measure/device/device_step.h"

namespace weft::measure {
namespace device_rate_test {

TEST(DeviceRate, ProductsCountAMultiplicationAndAnAddition) {
  EXPECT_EQ(product_flop(2, 3, 5), 60);
  const DeviceRate rate{.name = "x", .shape = "", .unit = WorkUnit::Flop, .work = 60, .seconds = 2};
  EXPECT_EQ(rate.per_second(), 30);
}

TEST(DeviceRate, AttentionCountsTheHalfThatIsNotMasked) {
  const AttentionWork work{.batch = 2,
                           .sequence = 8,
                           .heads = 3,
                           .groups = 1,
                           .head_width = 4,
                           .value_width = 4};
  // Two products of 8 x 8 x 4 in each of 6 heads, half of them.
  EXPECT_EQ(work.forward_flop(), 6 * 2 * (2 * 8 * 8 * 4) / 2);
  EXPECT_EQ(work.backward_flop(), 2.5 * work.forward_flop());
  AttentionWork latent = work;
  latent.head_width = 6;
  EXPECT_EQ(latent.forward_flop(), 6.0 * 8 * 8 * (6 + 4));
  EXPECT_EQ(latent.backward_flop(), 6.0 * 8 * 8 * (3 * 6 + 2 * 4));
}

TEST(DeviceRate, UnevenRowsAreTheSameEveryTimeAndStayBelowTwiceTheMean) {
  const std::vector<std::int64_t> rows = uneven_rows(128, 1024);
  EXPECT_EQ(rows, uneven_rows(128, 1024));
  EXPECT_GE(*std::ranges::min_element(rows), 0);
  EXPECT_LT(*std::ranges::max_element(rows), 2048);
  const double mean =
      static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0})) / 128;
  EXPECT_NEAR(mean, 1024, 150);
}

TEST(DeviceRate, ExpertsProductsAreThoseOfTheTable) {
  config::ModelConfig model;
  model.hidden_size = 2048;
  model.num_moe_experts = 128;
  model.moe_ffn_hidden_size = 768;
  const std::vector<GroupedProduct> products = grouped_products(model);
  ASSERT_EQ(products.size(), 8u);
  EXPECT_EQ(products[0].name, "FC1");
  EXPECT_EQ(products[0].n, 1536);
  EXPECT_EQ(products[0].k, 2048);
  EXPECT_EQ(products[0].rows_name, "128 x 256 rows");
  EXPECT_EQ(products[0].all_rows(), 128 * 256);
  EXPECT_EQ(products[1].name, "FC2");
  EXPECT_EQ(products[1].n, 2048);
  EXPECT_EQ(products[1].k, 768);
  EXPECT_EQ(products[2].all_rows(), 128 * 1024);
  EXPECT_EQ(products[4].rows, std::vector<std::int64_t>(16, 8192));
  EXPECT_EQ(products[6].rows.size(), 128u);
}

trace::Span operation(const char* name,
                      trace::SpanKind kind,
                      std::int64_t begin,
                      std::int64_t end) {
  return {.name = name,
          .node = "0F0.core",
          .lane = "compute",
          .kind = kind,
          .begin_ns = begin,
          .end_ns = end};
}

TEST(DeviceStep, SharesAreOfOperationsAndWhatIsBetweenThem) {
  using trace::SpanKind;
  std::vector<trace::Span> spans{operation("linear", SpanKind::Gemm, 100, 400),
                                 operation("attention", SpanKind::Attention, 400, 600),
                                 operation("add", SpanKind::Memory, 700, 800),
                                 operation("linear", SpanKind::Gemm, 1000, 1100)};
  spans.push_back({.name = "0F0.core",
                   .node = "0F0.core",
                   .lane = "compute",
                   .kind = SpanKind::Node,
                   .begin_ns = 0,
                   .end_ns = 5000});
  const TimeShares shares = shares_of(spans);
  EXPECT_DOUBLE_EQ(shares.products, 400e-9);
  EXPECT_DOUBLE_EQ(shares.attention, 200e-9);
  EXPECT_DOUBLE_EQ(shares.memory, 100e-9);
  EXPECT_NEAR(shares.idle, 300e-9, 1e-15);
  EXPECT_NEAR(shares.rest_share(900e-9), 1.0 / 3, 1e-9);
  const std::vector<OperationTime> times = operations_of(spans);
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0].name, "linear");
  EXPECT_EQ(times[0].calls, 2);
  EXPECT_DOUBLE_EQ(times[0].seconds, 400e-9);
  EXPECT_EQ(times[2].name, "add");
}

TEST(DeviceStep, ForwardAndBackwardLeaveTheEndOfTheStepOut) {
  using schedule::Direction;
  using schedule::Piece;
  const auto entry = [](Piece piece, Direction direction, std::vector<int> waits) {
    return schedule::Entry{.node = {.direction = direction, .micro_batch = 0, .piece = piece},
                           .waits = std::move(waits)};
  };
  schedule::Graph training;
  training.entries = {entry(Piece::Embed, Direction::F, {}),
                      entry(Piece::Tie, Direction::None, {}),
                      entry(Piece::Head, Direction::D, {0}),
                      entry(Piece::Embed, Direction::W, {2, 0}),
                      entry(Piece::Optimizer, Direction::None, {3})};
  const schedule::Graph graph = forward_and_backward(training);
  ASSERT_EQ(graph.entries.size(), 3u);
  EXPECT_EQ(graph.entries[1].waits, std::vector<int>{0});
  EXPECT_EQ(graph.entries[2].waits, (std::vector<int>{1, 0}));
}

}  // namespace device_rate_test
}  // namespace weft::measure
