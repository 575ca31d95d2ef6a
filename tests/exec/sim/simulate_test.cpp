// Simulation of graphs small enough to compute by hand.
#include "weft/exec/sim/simulate.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/exec/sim/toy_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/exec/sim/measured_overheads.h"

namespace weft::exec::sim {
namespace simulate_test {

using schedule::Lane;

std::int64_t busy_ns(const Result& result, std::size_t rank, Lane lane) {
  return result.busy_ns[rank][static_cast<std::size_t>(lane)];
}

TEST(Simulate, LanesRunBesideEachOtherAndWaitsHold) {
  const ToyStep toy(
      {"compute 0F0.permute\n"
       "ep 0F0.dispatch < 0F0.permute\n"
       "compute 1D0.experts\n"
       "compute 0F0.experts < 0F0.dispatch\n"},
      {{"0F0.permute", 10}, {"0F0.dispatch", 20}, {"1D0.experts", 15}, {"0F0.experts", 5}});
  EXPECT_EQ(toy.at("0F0.permute"), (Interval{0, 10}));
  EXPECT_EQ(toy.at("0F0.dispatch"), (Interval{10, 30}));
  EXPECT_EQ(toy.at("1D0.experts"), (Interval{10, 25}));
  EXPECT_EQ(toy.at("0F0.experts"), (Interval{30, 35}));
  const Result result = toy.run();
  EXPECT_EQ(result.step_ns, 35);
  EXPECT_DOUBLE_EQ(result.step_seconds(), 35e-9);
  EXPECT_EQ(busy_ns(result, 0, Lane::Compute), 30);
  EXPECT_EQ(busy_ns(result, 0, Lane::Ep), 20);
  EXPECT_EQ(busy_ns(result, 0, Lane::Dp), 0);
}

TEST(Simulate, NothingStartsBeforeAHostNodeThatWasIssuedEarlier) {
  const char* const nodes =
      "compute 0F0.route\n"
      "ep 0F0.counts < 0F0.route\n"
      "{}host 0F0.sizes < 0F0.counts\n{}";
  const ToyStep::CostsNs costs{{"0F0.route", 10},
                               {"0F0.counts", 7},
                               {"0F0.sizes", 3},
                               {"0D0.mlp", 50}};
  const std::string other = "compute 0D0.mlp\n";
  const ToyStep held({base::text(fmt::runtime(nodes), "", other)}, costs);
  EXPECT_EQ(held.at("0F0.sizes"), (Interval{0, 20}));  // from its issue, as in a trace
  EXPECT_EQ(held.at("0D0.mlp"), (Interval{20, 70}));
  EXPECT_EQ(busy_ns(held.run(), 0, Lane::Host), 3);
  const ToyStep queued({base::text(fmt::runtime(nodes), other, "")}, costs);
  EXPECT_EQ(queued.at("0D0.mlp"), (Interval{10, 60}));
  EXPECT_EQ(queued.at("0F0.sizes"), (Interval{0, 20}));
}

TEST(Simulate, ACollectiveStartsWhenTheLastMemberArrives) {
  const std::string text =
      "compute 0F0.permute\n"
      "ep 0F0.dispatch < 0F0.permute\n";
  const ToyStep toy(
      {text, text},
      {{"0F0.permute@0", 10}, {"0F0.permute@1", 30}, {"0F0.dispatch@0", 5}, {"0F0.dispatch@1", 8}});
  EXPECT_EQ(toy.at("0F0.dispatch", 0), (Interval{10, 35}));
  EXPECT_EQ(toy.at("0F0.dispatch", 1), (Interval{30, 38}));
  EXPECT_EQ(busy_ns(toy.run(), 0, Lane::Ep), 5);
  EXPECT_EQ(busy_ns(toy.run(), 1, Lane::Ep), 8);
  EXPECT_EQ(toy.run().step_ns, 38);
}

TEST(Simulate, ASendIsOverWhenItIsReceived) {
  const ToyStep toy({"compute 0F0.mlp\n"
                     "pp_send_next c0F0.send < 0F0.mlp\n"
                     "compute 0F1.mlp\n",
                     "compute 1F9.mlp\n"
                     "pp_receive_previous c1F0.receive < 1F9.mlp\n"
                     "compute 1F0.mlp < c1F0.receive\n"},
                    {{"0F0.mlp", 10},
                     {"0F1.mlp", 1},
                     {"1F9.mlp", 40},
                     {"1F0.mlp", 10},
                     {"c0F0.send", 4},
                     {"c1F0.receive", 4}});
  EXPECT_EQ(toy.at("c0F0.send", 0), (Interval{10, 44}));
  EXPECT_EQ(toy.at("0F1.mlp", 0), (Interval{10, 11}));
  EXPECT_EQ(toy.at("c1F0.receive", 1), (Interval{40, 44}));
  EXPECT_EQ(toy.at("1F0.mlp", 1), (Interval{44, 54}));
}

TEST(Simulate, AGradientIsReceivedFromTheNextStage) {
  const ToyStep toy(
      {"pp_receive_next c0D0.receive\n", "compute 1D0.mlp\npp_send_previous c1D0.send < 1D0.mlp\n"},
      {{"1D0.mlp", 6}, {"c1D0.send", 1}, {"c0D0.receive", 1}});
  EXPECT_EQ(toy.at("c0D0.receive", 0), (Interval{0, 7}));
  EXPECT_EQ(toy.at("c1D0.send", 1), (Interval{6, 7}));
}

class OnAWire : public ::testing::Test {
 protected:
  // Rank 0 sends 100 bytes to rank 1 in every operation, at 1 byte/ns.
  static Wire one_way(double latency_ns = 0) {
    return {fabric_of(1, latency_ns), [](const schedule::Node&, std::span<const int>) {
              return std::vector<grid::Transfer>{{.from = 0, .to = 1, .bytes = 100}};
            }};
  }
};

TEST_F(OnAWire, OperationsOfTwoLanesShareThePortsInTheOrderTheyCome) {
  const std::string text =
      "compute 0D0.mlp\n"
      "dp reduce.dense < 0D0.mlp\n"
      "ep 0F0.dispatch\n";
  ToyStep toy({text, text}, {{"0D0.mlp", 30}, {"reduce.dense", 2}});
  toy.step().wire = one_way();
  // The dispatch is issued later but comes first.
  EXPECT_EQ(toy.at("0F0.dispatch", 0), (Interval{0, 100}));
  EXPECT_EQ(toy.at("reduce.dense", 0), (Interval{30, 202}));
  EXPECT_EQ(toy.at("reduce.dense", 1), (Interval{30, 202}));
  EXPECT_EQ(busy_ns(toy.run(), 0, Lane::Dp), 172);
}

TEST_F(OnAWire, AMemberIsDoneWhenItsOwnTransfersAre) {
  const std::string text = "ep 0F0.dispatch\n";
  ToyStep toy({text, text, text}, {{"0F0.dispatch", 1}});
  toy.step().wire = one_way(50);
  EXPECT_EQ(toy.at("0F0.dispatch", 0), (Interval{0, 151}));
  EXPECT_EQ(toy.at("0F0.dispatch", 1), (Interval{0, 151}));
  EXPECT_EQ(toy.at("0F0.dispatch", 2), (Interval{0, 1}));
}

TEST_F(OnAWire, TransfersAreAskedForByTheNameUnderWhichRanksMeet) {
  ToyStep toy({"pp_send_next c0F0.send\n", "pp_receive_previous c1F0.receive\n"}, {});
  std::vector<std::string> asked;
  toy.step().wire =
      Wire{fabric_of(1, 0), [&](const schedule::Node& node, std::span<const int> members) {
             asked.push_back(base::text("{} {}", schedule::print(node), fmt::join(members, " ")));
             return std::vector<grid::Transfer>{{.from = 0, .to = 1, .bytes = 9}};
           }};
  EXPECT_EQ(toy.run().step_ns, 9);
  EXPECT_EQ(asked, std::vector<std::string>{"c0F0.send 0 1"});
}

TEST_F(OnAWire, OfASendTheFirstMemberIsTheSender) {
  ToyStep toy({"pp_receive_next c0D0.receive\n", "pp_send_previous c1D0.send\n"}, {});
  std::vector<int> asked;
  toy.step().wire = Wire{fabric_of(1, 0), [&](const schedule::Node&, std::span<const int> members) {
                           asked.assign(members.begin(), members.end());
                           return std::vector<grid::Transfer>{{members[0], members[1], 9}};
                         }};
  EXPECT_EQ(toy.run().step_ns, 9);
  EXPECT_EQ(asked, (std::vector{1, 0}));
}

TEST_F(OnAWire, AFreeFabricCostsNothing) {
  const std::string text = "ep 0F0.dispatch\n";
  ToyStep toy({text, text}, {{"0F0.dispatch", 3}});
  toy.step().wire = Wire{.fabric = {}, .transfers = one_way().transfers};
  EXPECT_EQ(toy.run().step_ns, 3);
}

TEST(SimulateOverheads, TheHostIssuesOneNodeAfterTheOther) {
  ToyStep toy({"compute 0F0.embed\n"
               "ep 0F0.counts\n"
               "host 0F0.sizes < 0F0.counts\n"
               "copy 0F0.permute\n"
               "compute 0F0.mlp\n"},
              {{"0F0.embed", 100}, {"0F0.counts", 10}, {"0F0.sizes", 5}});
  toy.step().overheads = {.issue_seconds = 2e-9};
  EXPECT_EQ(toy.at("0F0.embed"), (Interval{2, 102}));
  EXPECT_EQ(toy.at("0F0.counts"), (Interval{4, 14}));
  EXPECT_EQ(toy.at("0F0.sizes"), (Interval{6, 19}));
  EXPECT_EQ(toy.at("0F0.permute"), (Interval{21, 21}));
  EXPECT_EQ(toy.at("0F0.mlp"), (Interval{102, 102}));
}

TEST(SimulateOverheads, TheHostRunsComputeItselfWhereThereIsNoOtherLane) {
  const std::string inline_nodes =
      "compute 0F0.embed\n"
      "host 0F0.sizes\n"
      "compute 0F0.mlp\n"
      "compute 1F0.mlp\n";
  const ToyStep::CostsNs costs{{"0F0.embed", 10}, {"0F0.sizes", 5}, {"0F0.mlp", 20}};
  ToyStep alone({inline_nodes}, costs);
  alone.step().overheads = {.issue_seconds = 2e-9};
  EXPECT_EQ(alone.at("0F0.embed"), (Interval{2, 12}));
  EXPECT_EQ(alone.at("0F0.sizes"), (Interval{14, 19}));
  EXPECT_EQ(alone.at("0F0.mlp"), (Interval{21, 41}));
  EXPECT_EQ(alone.at("1F0.mlp"), (Interval{43, 43}));
  ToyStep beside({inline_nodes + "ep 0F0.counts\n"}, costs);
  beside.step().overheads = {.issue_seconds = 2e-9};
  EXPECT_EQ(beside.at("0F0.sizes"), (Interval{4, 9}));
  EXPECT_EQ(beside.at("0F0.mlp"), (Interval{12, 32}));
  EXPECT_EQ(beside.at("1F0.mlp"), (Interval{32, 32}));
}

TEST(SimulateOverheads, WakingTakesTimeOnlyWhereANodeWaitedForAnotherLane) {
  ToyStep toy({"compute 0F0.permute\n"
               "ep 0F0.dispatch < 0F0.permute\n"
               "compute 0D0.mlp\n"
               "compute 0F0.experts < 0F0.dispatch\n"
               "ep 1F0.dispatch < 0F0.permute\n"
               "host 0F0.sizes < 1F0.dispatch\n"},
              {{"0F0.permute", 10},
               {"0F0.dispatch", 5},
               {"0D0.mlp", 20},
               {"0F0.experts", 1},
               {"0F0.sizes", 1}});
  toy.step().overheads = {.wake_seconds = 3e-9};
  EXPECT_EQ(toy.at("0F0.dispatch"), (Interval{13, 18}));
  EXPECT_EQ(toy.at("0F0.experts"), (Interval{30, 31}));  // its lane was busy until then
  EXPECT_EQ(toy.at("1F0.dispatch"), (Interval{18, 18}));
  EXPECT_EQ(toy.at("0F0.sizes"), (Interval{0, 22}));
}

TEST(SimulateOverheads, ComputeNodesFollowEachOtherAfterAMoment) {
  ToyStep toy({"compute 0F0.permute\n"
               "ep 0F0.dispatch < 0F0.permute\n"
               "compute 0D0.mlp\n"
               "ep 1F0.dispatch\n"
               "compute 0F0.experts < 0F0.dispatch\n"},
              {{"0F0.permute", 10}, {"0F0.dispatch", 5}, {"0D0.mlp", 20}, {"0F0.experts", 1}});
  toy.step().overheads = {.next_seconds = 2e-9};
  EXPECT_EQ(toy.at("0D0.mlp"), (Interval{12, 32}));
  EXPECT_EQ(toy.at("1F0.dispatch"), (Interval{15, 15}));  // no other lane
  EXPECT_EQ(toy.at("0F0.experts"), (Interval{34, 35}));
}

// By hand: a span includes the wait, its operations are the work.
TEST(MeasuredOverheads, AreWhatPassesBetweenNodes) {
  using trace::SpanKind;
  const auto span =
      [](std::string name, std::string node, std::string lane, SpanKind kind, int from, int to) {
        return trace::Span{.name = std::move(name),
                           .node = std::move(node),
                           .lane = std::move(lane),
                           .kind = kind,
                           .begin_ns = from,
                           .end_ns = to};
      };
  trace::Timeline timeline;
  const auto node =
      [&](std::string name, std::string lane, int from, int to, std::vector<std::string> after) {
        timeline.spans.push_back(span(name, name, lane, SpanKind::Node, from, to));
        timeline.spans.back().after = std::move(after);
      };
  const auto work = [&](std::string of, std::string lane, int from, int to) {
    timeline.spans.push_back(
        span("work", std::move(of), std::move(lane), SpanKind::Gemm, from, to));
  };
  node("a", "compute", 100, 150, {});
  work("a", "compute", 100, 120);
  work("a", "compute", 130, 150);
  node("x", "ep", 150, 200, {"a"});
  work("x", "ep", 160, 200);
  node("b", "compute", 150, 170, {});
  work("b", "compute", 154, 170);
  node("c", "compute", 170, 240, {"x"});
  work("c", "compute", 220, 225);
  work("c", "compute", 231, 240);
  const Overheads overheads = measure_overheads({&timeline, 1});
  // The first node of a lane gives no measurement. b comes 4 after a; c waits for x and takes 20 to
  // wake; between the operations of b and c lie 0 and 6.
  EXPECT_DOUBLE_EQ(overheads.wake_seconds, 20e-9);
  EXPECT_DOUBLE_EQ(overheads.next_seconds, (4 + 3) * 1e-9);
  EXPECT_EQ(measure_overheads({}).wake_seconds, 0);
}

TEST(Standstill, TheCircleIsNamed) {
  ToyStep toy({"compute 0F0.embed\nep 0F0.counts < 0F0.embed\nep 0F0.dispatch\n",
               "ep 0F0.dispatch\nep 0F0.counts\n"},
              {});
  EXPECT_EQ(
      complaint_of(toy.step()),
      "the step comes to a standstill: 0F0.counts on rank 0 waits for 0F0.counts on rank 1 "
      "waits for 0F0.dispatch on rank 1 waits for 0F0.dispatch on rank 0 waits for 0F0.counts "
      "on rank 0; members of a group must issue the same operations in the same order");
}

TEST(Standstill, AHostNodeIsPartOfTheCircle) {
  ToyStep toy({"ep 0F0.counts\nhost 0F0.sizes < 0F0.counts\ndp totals\n",
               "dp totals\nhost clip < totals\nep 0F0.counts\n"},
              {});
  const std::string complaint = complaint_of(toy.step());
  for (const char* const part : {"0F0.counts on rank 1 waits for clip on rank 1",
                                 "clip on rank 1 waits for totals on rank 1",
                                 "totals on rank 0 waits for 0F0.sizes on rank 0"}) {
    EXPECT_NE(complaint.find(part), std::string::npos) << complaint;
  }
}

TEST(Standstill, AMemberWithoutTheOperationIsNamed) {
  ToyStep toy({"ep 0F0.counts\ncompute 0F0.permute < 0F0.counts\n", "compute 0F0.permute\n"}, {});
  const std::string complaint = complaint_of(toy.step());
  EXPECT_NE(complaint.find("0F0.counts on rank 0 waits for rank 1, which never issues it"),
            std::string::npos)
      << complaint;
}

TEST(Simulate, ACostThatIsNoDurationIsOurBug) {
  for (const double cost : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const ToyStep toy({"compute 0F0.embed\n"}, {{"0F0.embed", cost}});
    EXPECT_THROW(toy.run(), base::InternalError);
  }
}

TEST(Simulate, NothingTakesNoTime) {
  EXPECT_EQ(simulate({}).step_ns, 0);
  EXPECT_EQ(ToyStep({"", ""}, {}).run().step_ns, 0);
}

}  // namespace simulate_test
}  // namespace weft::exec::sim
