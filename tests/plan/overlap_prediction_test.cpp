#include "weft/plan/price/overlap_prediction.h"

#include <gtest/gtest.h>

#include "weft/derive/derived.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/hardware/slow_down.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace overlap_prediction_test {

namespace sim = exec::sim;

constexpr double kFastRank = 0.003, kSlowRank = 0.005, kOperation = 0.002;  // seconds per node
constexpr std::int64_t kBytes = 1'000'000;  // per rank and operation

config::Config plain_config() {
  config::Config config;
  config.model.num_layers = 2;
  config.model.num_moe_experts = 4;
  config.model.expert_model_parallel_size = 2;
  config.train.global_batch_size = 6;
  config.runtime.world_size = 2;
  return config;
}

// Plain order on free links, traced on two ranks. Rank 0 waits for rank 1 in every operation.
class TracedStep {
 public:
  explicit TracedStep(double compute_factor = 1)
      : compute_factor_(compute_factor),
        grid_(derive::layout_of(config)),
        plans_(schedule::plan_step(config, grid_)) {
    const sim::SimulatedStep step{
        .graphs = {&graph(), &graph()},
        .members =
            [&](int rank, const schedule::Entry& entry) {
              return schedule::ranks_of_entry(grid_, {}, rank, entry);
            },
        .cost = [&](int rank, int entry) { return cost(rank, entry); },
        .wire = sim::Wire{.fabric = {},
                          .transfers =
                              [](const auto&, auto) {
                                return std::vector<grid::Transfer>{
                                    {.from = 0, .to = 1, .bytes = kBytes},
                                    {.from = 1, .to = 0, .bytes = kBytes}};
                              }},
        .overheads = {}};
    const sim::Result result = sim::simulate(step);
    seconds = result.step_seconds();
    timelines = sim::timelines_of(step, result);
  }

  OverlapPrediction prediction() const { return {config, grid::Fabric(), timelines, seconds}; }
  double operations() const { return count(schedule::is_meeting); }
  double layers_operations() const {
    return count([](const schedule::Entry& entry) {
      return schedule::is_meeting(entry) && entry.node.layer != schedule::kNone;
    });
  }
  double computations() const {
    return count([](const schedule::Entry& e) { return e.lane == schedule::Lane::Compute; });
  }

  const config::Config config = plain_config();
  double seconds = 0;
  std::vector<trace::Timeline> timelines;

 private:
  const schedule::Graph& graph() const { return plans_.front().training; }
  sim::Cost cost(int rank, int entry) const {
    const schedule::Entry& node = graph().entries[static_cast<std::size_t>(entry)];
    if (schedule::is_meeting(node)) return {.seconds = kOperation};
    if (node.lane != schedule::Lane::Compute) return {};
    return {.seconds = compute_factor_ * (rank == 0 ? kFastRank : kSlowRank)};
  }
  template <typename Is>
  double count(const Is& is) const {
    return static_cast<double>(std::ranges::count_if(graph().entries, is));
  }

  double compute_factor_;
  grid::Grid grid_;
  std::vector<schedule::RankPlan> plans_;
};

TEST(OverlapPrediction, CommunicationAloneIsWithoutComputeAndWithoutWaitingForALatePeer) {
  const TracedStep traced;
  EXPECT_NEAR(traced.prediction().communication_seconds(), traced.operations() * kOperation, 1e-6);
}

TEST(OverlapPrediction, ComputeAloneIsTheSlowerRanks) {
  const TracedStep traced;
  EXPECT_NEAR(traced.prediction().compute_seconds(), traced.computations() * kSlowRank, 1e-6);
}

TEST(OverlapPrediction, ComputeMayCostWhatItCostWhereTheDeviceWasBusier) {
  const TracedStep step, busier(1.5);
  OverlapPrediction prediction = step.prediction();
  const double communication = prediction.communication_seconds();
  prediction.take_compute_from(busier.timelines);
  EXPECT_NEAR(prediction.compute_seconds(), 1.5 * step.prediction().compute_seconds(), 1e-6);
  EXPECT_DOUBLE_EQ(prediction.communication_seconds(), communication);
}

TEST(OverlapPrediction, CopiesSlowDownOnlyWhatRunsBesideThem) {
  const TracedStep step, slowed(1.3);
  EXPECT_NEAR(slower_compute(step.timelines, slowed.timelines), 0.3, 1e-3);
  config::Config overlapped = step.config;
  overlapped.comm_overlap.overlap_moe_expert_parallel_comm = true;
  OverlapPrediction prediction = step.prediction();
  const double plain = prediction.step_seconds(step.config);
  const double before = prediction.step_seconds(overlapped);
  prediction.take_copies_from(step.timelines, 0.3);
  EXPECT_NEAR(prediction.step_seconds(step.config), plain, 0.01 * plain);
  const double now = prediction.step_seconds(overlapped);
  EXPECT_GT(now, before);
  EXPECT_LT(now, 1.3 * before);
}

TEST(OverlapPrediction, LinksComeOnTopOfWhatOperationsCostOnFreeOnes) {
  const TracedStep traced;
  grid::Fabric links;
  links.intra = {.bytes_per_second = 1e9, .latency_seconds = 0};
  EXPECT_NEAR(traced.prediction().communication_seconds(links),
              traced.operations() * (kOperation + static_cast<double>(kBytes) / 1e9),
              1e-6);
}

// Layers alone: excludes the optimizer's reductions and gathers.
TEST(OverlapPrediction, CommunicationOfTheLayersIsWithoutTheOptimizers) {
  const TracedStep traced;
  EXPECT_NEAR(traced.prediction().layers_communication_seconds(),
              traced.layers_operations() * kOperation,
              1e-6);
  EXPECT_LT(traced.layers_operations(), traced.operations());
}

TEST(OverlapPrediction, OneRankStandsForThoseOfWhichNothingIsKnown) {
  TracedStep traced;
  traced.timelines.erase(traced.timelines.begin());
  const OverlapPrediction prediction = traced.prediction();
  EXPECT_NEAR(prediction.step_seconds(traced.config), traced.seconds, 1e-6);
  EXPECT_NEAR(prediction.communication_seconds(), traced.operations() * kOperation, 1e-6);
  grid::Fabric links;
  links.intra = {.bytes_per_second = 1e9, .latency_seconds = 0};
  EXPECT_NEAR(prediction.communication_seconds(links),
              traced.operations() * (kOperation + static_cast<double>(kBytes) / 1e9),
              1e-6);
}

}  // namespace overlap_prediction_test
}  // namespace weft::plan
