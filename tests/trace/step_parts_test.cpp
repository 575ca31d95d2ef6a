#include "weft/trace/step_parts.h"

#include <gtest/gtest.h>

namespace weft::trace {
namespace step_parts_test {

constexpr std::int64_t kMs = 1'000'000;

// Node and its single operation.
void append(Timeline& timeline,
            const std::string& name,
            std::string_view lane,
            int layer,
            std::int64_t begin_ms,
            std::int64_t end_ms) {
  Span node{.name = name,
            .node = name,
            .lane = std::string(lane),
            .begin_ns = begin_ms * kMs,
            .end_ns = end_ms * kMs,
            .layer = layer};
  timeline.spans.push_back(node);
  node.kind = lane == kComputeLane ? SpanKind::Gemm : SpanKind::Communication;
  node.layer = -1;
  timeline.spans.push_back(node);
}

TEST(StepParts, WhatRunsBesideALayerIsNotApart) {
  Timeline timeline;
  append(timeline, "F0.embed", kComputeLane, -1, 0, 10);
  append(timeline, "0F0.attention", kComputeLane, 0, 10, 40);
  append(timeline, "0F0.dispatch", "ep", 0, 40, 60);
  append(timeline, "F1.head", kComputeLane, -1, 50, 90);  // 10 ms of it under the dispatch
  append(timeline, "reduce.dense", "dp", -1, 90, 95);
  const StepParts parts = step_parts({&timeline, 1});
  EXPECT_DOUBLE_EQ(parts.apart_ms, 10 + 30 + 5);
  EXPECT_DOUBLE_EQ(parts.compute_apart_ms, 10 + 40);
}

TEST(StepParts, AHostThatWaitsForALayerIsNoWorkOfIt) {
  Timeline timeline;
  append(timeline, "F0.head", kComputeLane, -1, 0, 50);
  timeline.spans.push_back({.name = "0F1.sizes",
                            .node = "0F1.sizes",
                            .lane = std::string(kHostLane),
                            .begin_ns = 0,
                            .end_ns = 60 * kMs,
                            .layer = 0});
  append(timeline, "0F1.attention", kComputeLane, 0, 50, 70);
  EXPECT_DOUBLE_EQ(step_parts({&timeline, 1}).apart_ms, 50);
}

TEST(StepParts, AreMeansOverRunsAndRanks) {
  std::vector<Timeline> timelines(2);
  append(timelines[0], "F0.embed", kComputeLane, -1, 0, 10);
  append(timelines[1], "F0.embed", kComputeLane, -1, 0, 20);
  EXPECT_DOUBLE_EQ(step_parts(timelines).apart_ms, 15);
  EXPECT_DOUBLE_EQ(step_parts({}).apart_ms, 0);
}

}  // namespace step_parts_test
}  // namespace weft::trace
