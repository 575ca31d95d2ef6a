// What the executor records while tracing.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/exec/real/toy_support.h"

namespace weft::exec {
namespace {

using tensor::WorkClass;
using trace::Span;
using trace::SpanKind;

const char* const kStep =
    "compute 0F0.route\n"
    "ep 0F0.counts < 0F0.route\n"
    "host 0F0.sizes < 0F0.counts\n"
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "compute 0F0.experts < 0F0.dispatch\n";

const std::map<std::string, std::string> kLaneOf{{"0F0.route", "compute"},
                                                 {"0F0.counts", "ep"},
                                                 {"0F0.sizes", "host"},
                                                 {"0F0.permute", "compute"},
                                                 {"0F0.dispatch", "ep"},
                                                 {"0F0.experts", "compute"}};

// Every node but the host's does a product and a copy.
void two_operations(const std::string& node, tensor::Stream& stream) {
  if (node == "0F0.sizes") return sleep_us(500);
  stream.enqueue("first", WorkClass::Gemm, [](tensor::Workers&) { sleep_us(200); });
  stream.enqueue("second", WorkClass::Copy, [](tensor::Workers&) { sleep_us(100); });
}

std::vector<Span> traced(Toy& toy, const Toy::TextBody& body) {
  toy.run(body, Tracing::On);
  return toy.executor().take_spans();
}

bool is_node(const Span& span) {
  return span.kind == SpanKind::Node || span.kind == SpanKind::Host;
}

TEST(Spans, EveryNodeHasOneSpanOnItsLane) {
  Toy toy(kStep);
  std::map<std::string, std::string> lanes;
  for (const Span& span : traced(toy, two_operations)) {
    if (!is_node(span)) continue;
    EXPECT_EQ(span.name, span.node);
    EXPECT_TRUE(lanes.emplace(span.name, span.lane).second) << span.name << " twice";
    EXPECT_EQ(span.kind == SpanKind::Host, span.lane == "host");
  }
  EXPECT_EQ(lanes, kLaneOf);
}

TEST(Spans, NodesContainTheirOperations) {
  Toy toy(kStep);
  const std::vector<Span> spans = traced(toy, two_operations);
  std::map<std::string, Span> nodes;
  for (const Span& span : spans) {
    if (is_node(span)) nodes.emplace(span.node, span);
  }
  std::multiset<std::string> operations;
  for (const Span& span : spans) {
    EXPECT_LE(span.begin_ns, span.end_ns);
    if (is_node(span)) continue;
    const Span& node = nodes.at(span.node);
    EXPECT_EQ(span.lane, node.lane);
    EXPECT_GE(span.begin_ns, node.begin_ns);
    EXPECT_LE(span.end_ns, node.end_ns);
    EXPECT_GE(span.end_ns - span.begin_ns, 100'000);
    EXPECT_EQ(span.kind, span.name == "first" ? SpanKind::Gemm : SpanKind::Copy);
    operations.insert(span.node + " " + span.name);
  }
  EXPECT_EQ(operations.size(), 10u);
  EXPECT_EQ(operations.count("0F0.experts second"), 1u);
}

TEST(Spans, FollowTheOrderOfTheGraph) {
  Toy toy(kStep);
  std::map<std::string, Span> nodes;
  for (const Span& span : traced(toy, two_operations)) {
    if (is_node(span)) nodes.emplace(span.node, span);
  }
  const auto follows = [&](const char* later, const char* earlier) {
    EXPECT_GE(nodes.at(later).begin_ns, nodes.at(earlier).end_ns) << later << " " << earlier;
  };
  follows("0F0.counts", "0F0.route");
  follows("0F0.permute", "0F0.sizes");
  follows("0F0.dispatch", "0F0.permute");
  follows("0F0.experts", "0F0.dispatch");
  // A host node's span begins when it is issued: what it waits for is inside.
  EXPECT_GE(nodes.at("0F0.sizes").end_ns, nodes.at("0F0.counts").end_ns);
}

TEST(Spans, EveryClassOfWorkHasItsKind) {
  Toy toy("compute 0F0.mlp\n");
  const std::vector<Span> spans = traced(toy, [](const std::string&, tensor::Stream& stream) {
    for (const WorkClass kind : {WorkClass::Gemm,
                                 WorkClass::Attention,
                                 WorkClass::Memory,
                                 WorkClass::Copy,
                                 WorkClass::Communication}) {
      stream.enqueue("x", kind, [](tensor::Workers&) {});
    }
  });
  std::vector<SpanKind> kinds;
  for (const Span& span : spans) kinds.push_back(span.kind);
  EXPECT_EQ(kinds,
            (std::vector{SpanKind::Node,
                         SpanKind::Gemm,
                         SpanKind::Attention,
                         SpanKind::Memory,
                         SpanKind::Copy,
                         SpanKind::Communication}));
}

TEST(Spans, TracingOffRecordsNothing) {
  Toy toy(kStep);
  toy.run(two_operations, Tracing::Off);
  EXPECT_TRUE(toy.executor().take_spans().empty());
  EXPECT_FALSE(traced(toy, two_operations).empty());
  toy.run(two_operations, Tracing::Off);
  EXPECT_TRUE(toy.executor().take_spans().empty());
}

TEST(Spans, RunsAddUpUntilTheyAreTaken) {
  for (const std::string& step : {std::string(kStep), std::string("compute 0F0.mlp\n")}) {
    Toy toy(step);
    const std::size_t one = traced(toy, two_operations).size();
    for (int i = 0; i < 3; ++i) toy.run(two_operations, Tracing::On);
    EXPECT_EQ(toy.executor().take_spans().size(), 3 * one);
    EXPECT_TRUE(toy.executor().take_spans().empty());
  }
}

}  // namespace
}  // namespace weft::exec
