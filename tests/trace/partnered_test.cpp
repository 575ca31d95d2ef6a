#include "weft/trace/exposure/partnered.h"

#include <gtest/gtest.h>

namespace weft::trace {
namespace partnered_test {

constexpr std::int64_t kMs = 1'000'000;

void append(Timeline& timeline,
            const std::string& name,
            std::string_view lane,
            SpanKind kind,
            std::int64_t begin_ms,
            std::int64_t end_ms,
            bool coverable = false,
            int layer = 0) {
  Span span{.name = name,
            .node = name,
            .lane = std::string(lane),
            .begin_ns = begin_ms * kMs,
            .end_ns = end_ms * kMs,
            .layer = layer,
            .coverable = coverable};
  timeline.spans.push_back(span);
  span.kind = kind;
  timeline.spans.push_back(span);
}

TEST(Partnered, CountsOnlyWhatComputeMayRunBeside) {
  Timeline timeline;
  // no compute may run beside it
  append(timeline, "0F0.dispatch", "ep", SpanKind::Communication, 0, 10);
  append(timeline, "0F1.dispatch", "ep", SpanKind::Communication, 20, 40, true);
  append(timeline, "0F0.fc1", kComputeLane, SpanKind::Gemm, 20, 30);
  append(timeline, "0F0.act", kComputeLane, SpanKind::Memory, 30, 35);
  const Partnered found = partnered({&timeline, 1});
  EXPECT_DOUBLE_EQ(found.communication_ms, 20);
  EXPECT_DOUBLE_EQ(found.hidden_any, 0.75);
  EXPECT_DOUBLE_EQ(found.hidden_gemm, 0.5);
}

TEST(Partnered, WhatIsReducedForTheOptimizerIsOfNoLayer) {
  Timeline timeline;
  append(timeline, "0F1.dispatch", "ep", SpanKind::Communication, 20, 40, true);
  append(timeline, "0F0.fc1", kComputeLane, SpanKind::Gemm, 20, 40);
  append(timeline, "reduce0", "dp", SpanKind::Communication, 50, 70, true, -1);
  EXPECT_DOUBLE_EQ(partnered({&timeline, 1}).communication_ms, 20);
  EXPECT_DOUBLE_EQ(partnered({&timeline, 1}).hidden_any, 1);
}

TEST(Partnered, IsNothingInAPlainOrder) {
  Timeline timeline;
  append(timeline, "0F0.dispatch", "ep", SpanKind::Communication, 0, 10);
  EXPECT_EQ(partnered({&timeline, 1}).hidden_any, 0);
  EXPECT_EQ(partnered({&timeline, 1}).communication_ms, 0);
}

}  // namespace partnered_test
}  // namespace weft::trace
