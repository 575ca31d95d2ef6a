// Spans that the executor records while tracing.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/exec/real/toy_support.h"

namespace weft::exec {
namespace spans_test {

using tensor::WorkClass;
using trace::is_node;
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

// Every node except the host's runs a GEMM and a copy.
void two_operations(const std::string& node, tensor::Stream& stream) {
  if (node == "0F0.sizes") return sleep_us(500);
  stream.enqueue_host("first", WorkClass::Gemm, [](tensor::Transfers&) { sleep_us(200); });
  stream.enqueue_host("second", WorkClass::Copy, [](tensor::Transfers&) { sleep_us(100); });
}

std::vector<Span> traced(Toy& toy, const Toy::TextBody& body) {
  toy.run(body, Tracing::On);
  return toy.executor().take_spans();
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
  // A host node's span begins at its issue and includes its wait.
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
      stream.enqueue_host("x", kind, [](tensor::Transfers&) {});
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

std::map<std::string, Span> nodes_of(const std::vector<Span>& spans) {
  std::map<std::string, Span> nodes;
  for (const Span& span : spans) {
    if (is_node(span)) nodes.emplace(span.node, span);
  }
  return nodes;
}

TEST(Spans, NodesKnowTheirPlaceInTheGraph) {
  Toy toy(
      "compute 0F1.route\n"
      "ep 0F1.counts < 0F1.route\n"
      "host 0F1.sizes < 0F1.counts\n"
      "compute 0F1.permute\n"
      "ep 0F1.dispatch < 0F1.permute\n"
      "compute 3D0.experts\n"
      "compute 0F1.experts < 0F1.dispatch\n"
      "pp_receive_previous c1F2.receive\n"
      "compute optimizer\n");
  const auto nodes = nodes_of(traced(toy, [](const std::string& node, tensor::Stream& stream) {
    if (node != "0F1.sizes") stream.enqueue_host("x", WorkClass::Memory, [](tensor::Transfers&) {});
  }));
  using Names = std::vector<std::string>;
  EXPECT_EQ(nodes.at("0F1.route").after, Names{});
  EXPECT_EQ(nodes.at("0F1.counts").after, Names{"0F1.route"});
  EXPECT_EQ(nodes.at("0F1.sizes").after, Names{"0F1.counts"});
  EXPECT_EQ(nodes.at("0F1.permute").after, Names{"0F1.sizes"}) << "it is issued after the host's";
  EXPECT_EQ(nodes.at("0F1.dispatch").after, (Names{"0F1.permute", "0F1.sizes"}));
  EXPECT_EQ(nodes.at("3D0.experts").after, Names{}) << "the lane waited for the host before";
  EXPECT_EQ(nodes.at("0F1.experts").after, Names{"0F1.dispatch"});
  EXPECT_EQ(nodes.at("3D0.experts").layer, 3);
  EXPECT_EQ(nodes.at("3D0.experts").micro_batch, 0);
  EXPECT_EQ(nodes.at("optimizer").layer, -1);
  EXPECT_EQ(nodes.at("optimizer").micro_batch, -1);
  EXPECT_FALSE(nodes.at("0F1.counts").coverable) << "what follows waits for the host";
  EXPECT_TRUE(nodes.at("0F1.dispatch").coverable) << "by 3D0.experts";
  EXPECT_FALSE(nodes.at("3D0.experts").coverable) << "compute";
  EXPECT_EQ(nodes.at("0F1.dispatch").operation, "0F1.dispatch");
  EXPECT_EQ(nodes.at("c1F2.receive").operation, "c0F2.send");
  EXPECT_EQ(nodes.at("3D0.experts").operation, "");
}

TEST(Spans, BytesAddUpAndRowsPassThrough) {
  Toy toy("ep 0F0.dispatch\n");
  const std::vector<int> members{1, 3};
  const auto nodes = nodes_of(traced(toy, [&](const std::string&, tensor::Stream& stream) {
    stream.enqueue_host("counts",
                        WorkClass::Communication,
                        [](tensor::Transfers&) {},
                        {.bytes = 16, .rows = 2, .members = members});
    stream.enqueue_host("rows",
                        WorkClass::Communication,
                        [](tensor::Transfers&) {},
                        {.bytes = 100, .rows = 7, .members = members});
    stream.enqueue_host("weights",
                        WorkClass::Communication,
                        [](tensor::Transfers&) {},
                        {.bytes = 50, .rows = 7});
  }));
  const Span& node = nodes.at("0F0.dispatch");
  EXPECT_EQ(node.bytes, 166);
  EXPECT_EQ(node.rows, 7);
  EXPECT_EQ(node.members, members);
}

TEST(Spans, WorkThatTheHostLeavesOnTheComputeLaneIsANodeThere) {
  Toy toy("compute norm\nhost clip < norm\ncompute optimizer\n");
  std::map<std::string, SpanKind> kinds;  // by lane
  for (const Span& span : traced(toy, [](const std::string&, tensor::Stream& stream) {
         stream.enqueue_host("x", WorkClass::Memory, [](tensor::Transfers&) {});
       })) {
    if (is_node(span) && span.name == "clip") kinds[span.lane] = span.kind;
  }
  EXPECT_EQ(
      kinds,
      (std::map<std::string, SpanKind>{{"compute", SpanKind::Node}, {"host", SpanKind::Host}}));
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

}  // namespace spans_test
}  // namespace weft::exec
