// Cost rows: measured from traces, printed, looked up.
#include "weft/exec/sim/costs.h"

#include <gtest/gtest.h>

#include "tests/exec/sim/toy_support.h"
#include "weft/base/error.h"
#include "weft/exec/sim/measure.h"
#include "weft/exec/sim/timelines.h"
#include "weft/schedule/text/text.h"

namespace weft::exec::sim {
namespace costs_test {

using trace::Span;
using trace::SpanKind;

Span node(const std::string& name, const std::string& lane, std::int64_t begin, std::int64_t end) {
  return {.name = name,
          .node = name,
          .lane = lane,
          .kind = lane == "host" ? SpanKind::Host : SpanKind::Node,
          .begin_ns = begin,
          .end_ns = end};
}

Span operation(const Span& inside, SpanKind kind, std::int64_t begin, std::int64_t end) {
  Span span = inside;
  span.name = "work";
  span.kind = kind;
  span.begin_ns = begin;
  span.end_ns = end;
  return span;
}

// Spans of a node with one operation.
void append(std::vector<Span>& spans, const Span& span, SpanKind kind) {
  spans.push_back(span);
  spans.push_back(operation(span, kind, span.begin_ns, span.end_ns));
}

double ns_of(const CostTable& table, int rank, const std::string& name) {
  const Cost* cost = table.find(rank, schedule::parse_node(name));
  if (!cost) {
    ADD_FAILURE() << "no row " << name << " of rank " << rank;
    return -1;
  }
  return cost->seconds * 1e9;
}

TEST(MeasureCosts, AComputeNodeCostsTheSumOfItsOperations) {
  trace::Timeline timeline;
  const Span mlp = node("0F3.mlp", "compute", 100, 200);
  timeline.spans = {mlp,
                    operation(mlp, SpanKind::Gemm, 100, 110),
                    operation(mlp, SpanKind::Memory, 150, 154),
                    operation(mlp, SpanKind::Gemm, 180, 200)};
  const CostTable table = measure({&timeline, 1});
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "0F3.mlp"), 34);
  EXPECT_EQ(table.find(0, schedule::parse_node("0F3.mlp"))->kind, SpanKind::Gemm);
}

TEST(MeasureCosts, ARowIsTheMedianOverMicroBatchesAndRuns) {
  trace::Timeline timeline{.rank = 2};
  const std::int64_t durations[] = {10, 90, 30, 20};
  for (int i = 0; i < 4; ++i) {
    Span span = node(i % 2 ? "0F1.mlp" : "0F0.mlp", "compute", 0, durations[i]);
    span.run = i / 2;
    append(timeline.spans, span, SpanKind::Gemm);
  }
  const CostTable table = measure({&timeline, 1});
  EXPECT_DOUBLE_EQ(ns_of(table, 2, "0F77.mlp"), 25);
  EXPECT_EQ(table.find(0, schedule::parse_node("0F0.mlp")), nullptr);
  EXPECT_EQ(table.find(2, schedule::parse_node("0D0.mlp")), nullptr);
  EXPECT_EQ(table.find(2, schedule::parse_node("1F0.mlp")), nullptr);
}

TEST(MeasureCosts, AHostNodeCostsWhatIsLeftAfterItsWaits) {
  trace::Timeline timeline;
  append(timeline.spans, node("0F0.counts", "ep", 5, 40), SpanKind::Communication);
  Span sizes = node("0F0.sizes", "host", 10, 46);
  sizes.after = {"0F0.counts"};
  timeline.spans.push_back(sizes);
  Span late = node("clip", "host", 60, 63);
  late.after = {"0F0.counts"};
  timeline.spans.push_back(late);
  // Work that the host left on another lane is not the host's own.
  append(timeline.spans, node("clip", "compute", 63, 99), SpanKind::Memory);
  const CostTable table = measure({&timeline, 1});
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "0F0.sizes"), 6);
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "clip"), 3);
}

TEST(MeasureCosts, CommunicationCostsTheShortestOfItsMembersNotOfOtherGroups) {
  std::vector<trace::Timeline> timelines;
  const std::int64_t durations[] = {50, 12, 70, 9};
  for (int rank = 0; rank < 4; ++rank) {
    Span dispatch = node("0F0.dispatch", "ep", 1000 * rank, 1000 * rank + durations[rank]);
    dispatch.operation = "0F0.dispatch";
    dispatch.members = rank < 2 ? std::vector{0, 1} : std::vector{2, 3};
    timelines.push_back({.rank = rank});
    append(timelines.back().spans, dispatch, SpanKind::Communication);
  }
  const CostTable table = measure(timelines);
  for (const int rank : {0, 1}) EXPECT_DOUBLE_EQ(ns_of(table, rank, "0F0.dispatch"), 12);
  for (const int rank : {2, 3}) EXPECT_DOUBLE_EQ(ns_of(table, rank, "0F0.dispatch"), 9);
}

TEST(MeasureCosts, ASendAndItsReceiveAreOneOperation) {
  std::vector<trace::Timeline> timelines(2);
  for (int rank = 0; rank < 2; ++rank) {
    Span span = node(rank == 0 ? "c0F0.send" : "c1F0.receive", "pp", 0, rank == 0 ? 40 : 6);
    span.operation = "c0F0.send";
    span.members = {0, 1};
    timelines[static_cast<std::size_t>(rank)].rank = rank;
    append(timelines[static_cast<std::size_t>(rank)].spans, span, SpanKind::Communication);
  }
  const CostTable table = measure(timelines);
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "c0F0.send"), 6);
  EXPECT_DOUBLE_EQ(ns_of(table, 1, "c1F0.receive"), 6);
}

TEST(CompleteCosts, ANodeOfTheTracedGraphWithoutASpanCostsNothing) {
  trace::Timeline timeline;
  append(timeline.spans, node("0F0.mlp", "compute", 0, 8), SpanKind::Gemm);
  const schedule::Graph graph = schedule::parse_graph("compute 0F0.mlp\ncompute 0F0.dispatch\n");
  EXPECT_EQ(measure({&timeline, 1}).find(0, graph.entries[1].node), nullptr);
  const CostTable table = complete(measure({&timeline, 1}), {&graph});
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "0F0.mlp"), 8);
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "0F0.dispatch"), 0);
}

TEST(CompleteCosts, ARankThatWasNotMeasuredCostsWhatOneWithTheSameGraphDoes) {
  trace::Timeline timeline;
  append(timeline.spans, node("0F0.mlp", "compute", 0, 8), SpanKind::Gemm);
  const schedule::Graph graph = schedule::parse_graph("compute 0F0.mlp\n");
  const schedule::Graph other = graph;
  const CostTable table = complete(measure({&timeline, 1}), {&graph, &graph, &other});
  EXPECT_DOUBLE_EQ(ns_of(table, 1, "0F0.mlp"), 8);
  EXPECT_EQ(table.find(2, graph.entries[0].node), nullptr);
}

// One layer of two micro-batches: in sequence, and with transfers under compute.
const char* const kPlain =
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "compute 0F0.experts < 0F0.dispatch\n"
    "compute 0F1.permute\n"
    "ep 0F1.dispatch < 0F1.permute\n"
    "compute 0F1.experts < 0F1.dispatch\n";
const char* const kOverlapped =
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "compute 0F1.permute\n"
    "ep 0F1.dispatch < 0F1.permute\n"
    "compute 0F0.experts < 0F0.dispatch\n"
    "compute 0F1.experts < 0F1.dispatch\n";
const ToyStep::CostsNs kUneven{{"0F0.permute@0", 10},
                               {"0F1.permute@0", 10},
                               {"0F0.permute@1", 14},
                               {"0F1.permute@1", 14},
                               {"0F0.dispatch", 3},
                               {"0F1.dispatch", 3},
                               {"0F0.experts", 33},
                               {"0F1.experts", 33}};

TEST(MeasureCosts, CostsOfAPlainRunPredictTheOverlappedOne) {
  const Wire wire{fabric_of(2, 5), [](const schedule::Node&, std::span<const int>) {
                    return std::vector<grid::Transfer>{{0, 1, 20}, {1, 0, 20}};
                  }};
  ToyStep plain({kPlain, kPlain}, kUneven), overlapped({kOverlapped, kOverlapped}, kUneven);
  plain.step().wire = overlapped.step().wire = wire;
  const CostTable table = measure(timelines_of(plain.step(), plain.run()));
  EXPECT_DOUBLE_EQ(ns_of(table, 0, "0F0.dispatch"), 18);
  EXPECT_DOUBLE_EQ(ns_of(table, 1, "0F0.permute"), 14);
  SimulatedStep predicted = overlapped.step();
  predicted.wire.reset();
  predicted.cost = table.for_graphs(predicted.graphs);
  EXPECT_EQ(simulate(predicted).entries, overlapped.run().entries);
  EXPECT_LT(overlapped.run().step_ns, plain.run().step_ns);
}

CostTable small_table() {
  CostTable table;
  table.set(0,
            schedule::parse_node("3F7.dispatch"),
            {.seconds = 0.1, .kind = SpanKind::Communication});
  table.set(0, schedule::parse_node("reduce.dense#2"), {.seconds = 1.0 / 3});
  table.set(12, schedule::parse_node("c1D.send"), {.seconds = 0, .kind = SpanKind::Copy});
  return table;
}

TEST(CostTable, PrintsAndParsesBack) {
  const CostTable table = small_table();
  EXPECT_EQ(parse_costs(print(table)), table);
  EXPECT_EQ(parse_costs(print(CostTable{})), CostTable{});
  EXPECT_NE(print(table).find("\"3F.dispatch\""), std::string::npos) << print(table);
}

TEST(CostTable, WrongTextsAreNamed) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      parse_costs(text);
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto row = [&](const std::string& name, const std::string& cost) {
    return complaint(R"({"ranks": [{"rank": 0, "costs": {")" + name + "\": " + cost + "}}]}");
  };
  EXPECT_EQ(row("3F.mlp", R"({"seconds": 1, "kind": "gemm"})"), "");
  EXPECT_NE(complaint("{"), "");
  EXPECT_NE(complaint("{}"), "");
  EXPECT_NE(complaint("[1]"), "");
  EXPECT_NE(row("3F.mlp", R"({"seconds": "x", "kind": "gemm"})"), "");
  EXPECT_NE(row("3F.mlp", R"({"seconds": -1, "kind": "gemm"})").find("3F.mlp"), std::string::npos);
  EXPECT_NE(row("3F.mlp", R"({"seconds": 1, "kind": "gem"})").find("'gem'"), std::string::npos);
  EXPECT_NE(row("3F.mpl", R"({"seconds": 1, "kind": "gemm"})").find("3F.mpl"), std::string::npos);
  EXPECT_NE(row("3F0.mlp", R"({"seconds": 1, "kind": "gemm"})").find("3F0.mlp"), std::string::npos);
}

TEST(CostTable, EveryMissingRowIsNamedOnce) {
  const schedule::Graph graph = schedule::parse_graph(
      "compute 3F0.mlp\nep 3F0.dispatch\ncompute 3F1.mlp\ncompute optimizer\n");
  try {
    small_table().for_graphs({&graph});
    FAIL() << "no complaint";
  } catch (const base::ConfigError& error) {
    EXPECT_EQ(
        error.complaints(),
        (std::vector<std::string>{"no cost for optimizer on rank 0: measure a run that has it",
                                  "no cost for 3F.mlp on rank 0: measure a run that has it"}));
  }
}

TEST(CostTable, ARowIsForEveryMicroBatch) {
  const schedule::Graph graph = schedule::parse_graph("ep 3F0.dispatch\nep 3F1.dispatch\n");
  const CostOf cost = small_table().for_graphs({&graph});
  EXPECT_EQ(cost(0, 0), cost(0, 1));
  EXPECT_EQ(cost(0, 1), (Cost{.seconds = 0.1, .kind = SpanKind::Communication}));
}

}  // namespace costs_test
}  // namespace weft::exec::sim
