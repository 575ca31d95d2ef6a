#include "weft/plan/hardware/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/schedule/plans_support.h"
#include "weft/base/error.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/cost/calibrated_node.h"
#include "weft/plan/hardware/calibration_fit.h"
#include "weft/plan/hardware/calibration_text.h"
#include "weft/plan/price/simulated_step.h"

namespace weft::plan {
namespace calibration_test {

namespace sim = exec::sim;
using schedule::PlanCase;
using schedule::RankPlan;
using trace::SpanKind;

// Machine defined by its rates.
constexpr MachineRates kMachine{.product_flop = 2e-11,
                                .weight_byte = 3e-11,
                                .attention_forward_flop = 4e-11,
                                .attention_backward_flop = 6e-11,
                                .memory_byte = 2e-10,
                                .link_byte = 1e-9,
                                .link_call = 2e-5,
                                .wake = 3e-6};

PlanCase one_rank(const std::string& layers, int micro_batches) {
  return {.layers = layers, .ep = 1, .dp = 1, .micro_batches = micro_batches};
}

// Traced step of that machine.
class MadeUp {
 public:
  explicit MadeUp(const PlanCase& c, const sim::Contention& contention = {})
      : MadeUp(schedule::config_of(c), contention) {}
  explicit MadeUp(config::Config of, const sim::Contention& contention = {})
      : config(std::move(of)),
        grid_(derive::layout_of(config)),
        plans_(schedule::plan_step(config, grid_)),
        works_(node_works(config, grid_, plans_)) {
    sim::CostTable costs;
    for (const RankPlan& plan : plans_) {
      for (const schedule::Entry& entry : plan.training.entries) {
        const NodeSeconds own = seconds_of(plan.anatomy.pp_rank, entry.node);
        costs.set(plan.anatomy.pp_rank, entry.node, own.cost(entry, 0, 1));
      }
    }
    const sim::SimulatedStep step = simulated_step(plans_, costs, {.wake_seconds = kMachine.wake});
    const sim::Result result = sim::simulate(step, contention);
    seconds = result.step_seconds();
    timelines = sim::timelines_of(step, result);
    for (trace::Timeline& timeline : timelines) split(timeline);
  }

  CalibrationRun run() const {
    return {.config = config, .timelines = timelines, .seconds = seconds};
  }

  config::Config config;
  std::vector<trace::Timeline> timelines;
  double seconds = 0;

 private:
  NodeSeconds seconds_of(int rank, schedule::Node node) const {
    const schedule::Direction direction = node.direction;
    node.micro_batch = schedule::kNone;
    return node_seconds(works_.at({rank, node}),
                        direction,
                        NodeFactor{.memory_calls = 0},
                        kMachine);
  }

  // One operation of each class in place of the simulator's single one.
  void split(trace::Timeline& timeline) const {
    std::vector<trace::Span> spans;
    for (const trace::Span& span : timeline.spans) {
      if (trace::is_node(span) || span.lane != trace::kComputeLane) {
        spans.push_back(span);
        continue;
      }
      const NodeSeconds parts = seconds_of(timeline.rank, schedule::parse_node(span.node));
      const double all = parts.product + parts.attention + parts.memory;
      const double slower = all > 0 ? double(span.end_ns - span.begin_ns) * 1e-9 / all : 0;
      std::int64_t at_ns = span.begin_ns;
      for (const auto& [kind, part] : {std::pair{SpanKind::Gemm, parts.product},
                                       std::pair{SpanKind::Attention, parts.attention},
                                       std::pair{SpanKind::Memory, parts.memory}}) {
        if (part == 0) continue;
        trace::Span own = span;
        own.kind = kind;
        own.begin_ns = at_ns;
        own.end_ns = at_ns += std::llround(part * slower * 1e9);
        spans.push_back(std::move(own));
      }
    }
    timeline.spans = std::move(spans);
  }

  grid::Grid grid_;
  std::vector<RankPlan> plans_;
  WorkTable works_;
};

void expect_told(const Calibration& calibration, const MadeUp& other, double tolerance) {
  EXPECT_NEAR(calibrated_step(other.config, calibration).seconds,
              other.seconds,
              tolerance * other.seconds);
}

TEST(Calibration, FindsTheRatesOfAMachine) {
  const Calibration found = calibrate(MadeUp(PlanCase{.layers = "mmdm", .micro_batches = 6}).run(),
                                      std::nullopt,
                                      {.count = 8});
  EXPECT_NEAR(found.rates.product_flop, kMachine.product_flop, 0.02 * kMachine.product_flop);
  EXPECT_NEAR(found.rates.memory_byte, kMachine.memory_byte, 0.05 * kMachine.memory_byte);
  EXPECT_NEAR(found.rates.attention_forward_flop,
              kMachine.attention_forward_flop,
              0.02 * kMachine.attention_forward_flop);
  EXPECT_NEAR(found.rates.attention_backward_flop,
              kMachine.attention_backward_flop,
              0.02 * kMachine.attention_backward_flop);
  EXPECT_NEAR(found.rates.link_byte, kMachine.link_byte, 0.05 * kMachine.link_byte);
  EXPECT_NEAR(found.rates.wake, kMachine.wake, 0.02 * kMachine.wake);
}

TEST(Calibration, TellsStepsOfOtherModelsLayoutsAndOrders) {
  const MadeUp run(PlanCase{.layers = "mmm", .micro_batches = 4});
  const Calibration calibration = calibrate(run.run(), std::nullopt, {.count = 8});
  expect_told(calibration, run, 0.005);
  expect_told(calibrate(run.run(), std::nullopt, {}), run, 0.005);  // as for a device
  expect_told(calibration, MadeUp(one_rank("mmdm", 7)), 0.03);  // dense layers were not measured
  expect_told(calibration, MadeUp(PlanCase{.layers = "mmmm", .ep = 4, .dp = 4}), 0.02);
  expect_told(calibration, MadeUp(PlanCase{.layers = "mmmm", .ep = 2, .dp = 2, .pp = 2}), 0.02);
  expect_told(calibration,
              MadeUp(PlanCase{.layers = "mmmm", .overlap = true, .delay = true}),
              0.02);
  config::Config longer = schedule::config_of(PlanCase{.layers = "mmmm"});
  longer.model.seq_length *= 4;
  longer.model.hidden_size *= 2;
  expect_told(calibration, MadeUp(longer), 0.03);
}

TEST(Calibration, FindsHowMuchSlowerComputeAndCommunicationAreBesideEachOther) {
  const PlanCase plain{.layers = "mmmm", .micro_batches = 8};
  PlanCase beside = plain;
  beside.overlap = beside.delay = true;
  const MadeUp run(plain);
  for (const auto& [compute, communication] : {std::pair{0.25, 0.0}, std::pair{0.1, 0.4}}) {
    const MadeUp overlapped(
        beside,
        sim::Contention{.beside_communication = compute, .beside_compute = communication});
    const Calibration calibration = calibrate(run.run(), overlapped.run(), {.count = 8});
    EXPECT_NEAR(calibration.rates.beside_communication, compute, 0.03);
    EXPECT_NEAR(calibration.rates.beside_compute, communication, 0.05);
    expect_told(calibration, overlapped, 0.02);
  }
}

TEST(Calibration, KnowsThatRanksShareCores) {
  const MadeUp one(one_rank("mmmm", 4));
  Calibration calibration = calibrate(one.run(), std::nullopt, {.count = 2});
  PlanCase four{.layers = "mmmm", .ep = 1, .dp = 4, .micro_batches = 4};
  const config::Config config = schedule::config_of(four);
  const double on_two = calibrated_step(config, calibration).seconds;
  calibration.rates.cores = 4;
  EXPECT_GT(on_two, 1.7 * calibrated_step(config, calibration).seconds);
}

TEST(Calibration, KnowsThatExchangesWaitForRanksThatShareACore) {
  const MadeUp two(PlanCase{.layers = "mmmm", .ep = 2, .dp = 2, .micro_batches = 8});
  PlanCase four{.layers = "mmmm", .ep = 4, .dp = 4, .micro_batches = 8};
  const auto longer = [&](double turn) {
    const config::Config config = schedule::config_of(four);
    const auto seconds = [&](double turn_seconds) {
      const HostCores cores{.count = 2, .turn_seconds = turn_seconds};
      return calibrated_step(config, calibrate(two.run(), std::nullopt, cores)).seconds;
    };
    return seconds(turn) / seconds(0) - 1;
  };
  // A rank without other work leaves its core. It waits for rows that are permuted beside the
  // counts, for any time slice.
  EXPECT_NEAR(longer(1e-3), longer(1e-2), 1e-6);
  four.overlap = four.delay = true;
  EXPECT_GT(longer(1e-2), 0.02);
}

TEST(Calibration, ATraceThatSlowsComputeDownIsTakenOut) {
  const MadeUp run(one_rank("mm", 4));
  const CalibrationRun faster{.config = run.config,
                              .timelines = run.timelines,
                              .seconds = 0.9 * run.seconds};
  const Calibration calibration = calibrate(faster, std::nullopt, {});
  EXPECT_LT(calibration.rates.untraced, 1);
  EXPECT_NEAR(calibrated_step(run.config, calibration).seconds,
              faster.seconds,
              0.01 * faster.seconds);
}

TEST(Calibration, IsWrittenAndReadBack) {
  const Calibration calibration =
      calibrate(MadeUp(one_rank("mm", 2)).run(), std::nullopt, {.count = 4});
  const std::string text = print(calibration);
  EXPECT_EQ(parse_calibration(text), calibration);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t place = changed.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return changed.replace(place, from.size(), to);
  };
  for (const std::string& wrong : {std::string(),
                                   std::string("[]"),
                                   std::string("{}"),
                                   with("weft calibration 3", "weft calibration 2"),
                                   with("\"wake\"", "\"sleep\""),
                                   with("\"cores\": 4", "\"cores\": -4"),
                                   with("\"cores\": 4", "\"cores\": 1e99"),
                                   with("\"F.experts\"", "\"F.nothing\""),
                                   with("\"nodes\"", "\"notes\"")}) {
    EXPECT_THROW(parse_calibration(wrong), base::ConfigError) << wrong;
  }
}

// On a busy machine, impossible costs were written, and plans used them.
TEST(Calibration, WhatNoMachineTakesIsDoubted) {
  Calibration calibration{.rates = kMachine, .nodes = {{"F.experts", {}}}};
  EXPECT_TRUE(calibration_doubts(calibration).empty());
  calibration.rates.turn = 1.136;
  calibration.rates.product_flop = 1;
  calibration.nodes["F.experts"].product = 1e5;
  const std::vector<std::string> doubts = calibration_doubts(calibration);
  ASSERT_EQ(doubts.size(), 3u);
  EXPECT_NE(doubts[0].find("products: 1e-09 GFLOP/s"), std::string::npos) << doubts[0];
  EXPECT_NE(doubts[1].find("a turn on a core that ranks share: 1.136e+06 us"), std::string::npos)
      << doubts[1];
  EXPECT_NE(doubts[2].find("F.experts: 1e+05 times"), std::string::npos) << doubts[2];
}

}  // namespace calibration_test
}  // namespace weft::plan
