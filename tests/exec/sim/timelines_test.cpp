// Simulated step as a trace.
#include "weft/exec/sim/timelines.h"

#include <gtest/gtest.h>

#include "tests/exec/sim/toy_support.h"
#include "weft/base/text.h"
#include "weft/trace/exposure/exposure.h"

namespace weft::exec::sim {
namespace timelines_test {

using trace::Span;
using trace::SpanKind;

const char* const kStep =
    "compute 0F0.route\n"
    "ep 0F0.counts < 0F0.route\n"
    "compute 1D1.mlp\n"
    "host 0F0.sizes < 0F0.counts\n"
    "compute 0F0.permute\n"
    "ep 0F0.dispatch < 0F0.permute\n"
    "compute 0F0.experts < 0F0.dispatch\n";
const ToyStep::CostsNs kCosts{{"0F0.route", 10},
                              {"0F0.counts", 5},
                              {"1D1.mlp", 2},
                              {"0F0.sizes", 1},
                              {"0F0.permute", 3},
                              {"0F0.dispatch", 20},
                              {"0F0.experts", 7}};

std::vector<Span> spans_of(ToyStep& toy, std::size_t rank = 0) {
  return timelines_of(toy.step(), toy.run())[rank].spans;
}

Span node_of(const std::vector<Span>& spans, const std::string& name) {
  for (const Span& span : spans) {
    if (trace::is_node(span) && span.name == name) return span;
  }
  ADD_FAILURE() << "no span " << name;
  return {};
}

TEST(SimulatedTimelines, SpansAreThoseOfTheExecutorInItsOrder) {
  ToyStep toy({kStep}, kCosts);
  std::vector<std::string> lines;
  for (const Span& span : spans_of(toy)) {
    lines.push_back(base::text("{} {} {} {} {}-{}",
                               span.lane,
                               span.node,
                               span.name,
                               trace::word(span.kind),
                               span.begin_ns,
                               span.end_ns));
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "host 0F0.sizes 0F0.sizes host 0-16",
                "compute 0F0.route 0F0.route node 0-10",
                "compute 0F0.route gemm gemm 0-10",
                "compute 1D1.mlp 1D1.mlp node 10-12",
                "compute 1D1.mlp gemm gemm 10-12",
                "compute 0F0.permute 0F0.permute node 16-19",
                "compute 0F0.permute gemm gemm 16-19",
                "compute 0F0.experts 0F0.experts node 39-46",
                "compute 0F0.experts gemm gemm 39-46",
                "ep 0F0.counts 0F0.counts node 10-15",
                "ep 0F0.counts communication communication 10-15",
                "ep 0F0.dispatch 0F0.dispatch node 19-39",
                "ep 0F0.dispatch communication communication 19-39",
            }));
}

TEST(SimulatedTimelines, TheCostGivesTheKindOfACompute) {
  ToyStep toy({kStep}, kCosts);
  toy.step().cost = [](int, int) -> Cost { return {.seconds = 0, .kind = SpanKind::Attention}; };
  for (const Span& span : spans_of(toy)) {
    if (trace::is_node(span)) continue;
    EXPECT_EQ(span.kind, span.lane == "ep" ? SpanKind::Communication : SpanKind::Attention);
  }
}

TEST(SimulatedTimelines, NodesSayWhatTheyAreAndWhatTheyWaitedFor) {
  ToyStep toy({kStep, kStep}, kCosts);
  const std::vector<Span> spans = spans_of(toy, 1);
  const Span experts = node_of(spans, "0F0.experts"), mlp = node_of(spans, "1D1.mlp");
  EXPECT_EQ(mlp.layer, 1);
  EXPECT_EQ(mlp.micro_batch, 1);
  EXPECT_TRUE(mlp.after.empty());
  EXPECT_TRUE(mlp.operation.empty());
  EXPECT_EQ(experts.after, std::vector<std::string>{"0F0.dispatch"});
  // The host node, which the compute lane had not passed before.
  EXPECT_EQ(node_of(spans, "0F0.permute").after, std::vector<std::string>{"0F0.sizes"});
  EXPECT_EQ(node_of(spans, "0F0.sizes").after, std::vector<std::string>{"0F0.counts"});
  EXPECT_EQ(node_of(spans, "0F0.dispatch").after,
            (std::vector<std::string>{"0F0.permute", "0F0.sizes"}));
}

TEST(SimulatedTimelines, CommunicationSaysWithWhomAndWhetherItCanBeCovered) {
  ToyStep toy({kStep, kStep}, kCosts);
  toy.step().wire = Wire{fabric_of(1, 0), [](const schedule::Node&, std::span<const int>) {
                           return std::vector<grid::Transfer>{{0, 1, 30}, {1, 0, 40}};
                         }};
  const std::vector<Span> spans = spans_of(toy, 1);
  const Span counts = node_of(spans, "0F0.counts"), dispatch = node_of(spans, "0F0.dispatch");
  EXPECT_EQ(dispatch.operation, "0F0.dispatch");
  EXPECT_EQ(dispatch.members, (std::vector{0, 1}));
  EXPECT_EQ(dispatch.bytes, 40);
  EXPECT_TRUE(counts.coverable);     // 1D1.mlp may run beside it
  EXPECT_FALSE(dispatch.coverable);  // permute is before it and experts after
}

TEST(SimulatedTimelines, ExposureIsAnalysedAsOfARun) {
  ToyStep toy({kStep, kStep}, kCosts);
  const trace::Exposure exposure = trace::analyse(timelines_of(toy.step(), toy.run()));
  EXPECT_DOUBLE_EQ(exposure.mean_step_ms(), 46e-6);
  EXPECT_DOUBLE_EQ(exposure.total.communication_ms, 25e-6);
  EXPECT_DOUBLE_EQ(exposure.total.exposed_ms, 23e-6);  // all but 1D1.mlp beside the counts
  EXPECT_DOUBLE_EQ(exposure.total.hidden_gemm, 2.0 / 25);
  EXPECT_DOUBLE_EQ(exposure.total.reasons.no_partner_ms, 20e-6);
  EXPECT_DOUBLE_EQ(exposure.total.reasons.short_cover_ms, 3e-6);
}

TEST(SimulatedTimelines, AReceiveHasTheNameOfItsSend) {
  ToyStep toy({"pp_send_next c0F0.send\n", "pp_receive_previous c1F0.receive\n"}, {});
  const Span receive = node_of(spans_of(toy, 1), "c1F0.receive");
  EXPECT_EQ(receive.operation, "c0F0.send");
  EXPECT_EQ(receive.members, (std::vector{0, 1}));
}

}  // namespace timelines_test
}  // namespace weft::exec::sim
