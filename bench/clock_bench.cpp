// Planning, verifying and simulating a large step: 8 pipeline ranks of 2 chunks, 16 expert-parallel
// ranks, 48 layers, 64 micro-batches, interleaved, with delayed weight gradients. The total must be
// below 2 seconds. `entries`: number of simulated ones; one rank may represent its stage.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/schedule/plan.h"

namespace weft::exec::sim {
namespace {

config::Config large_config() {
  config::Config config;
  config.model.num_layers = 48;
  config.model.num_moe_experts = 64;
  config.model.moe_layer_freq.assign(48, 1);
  config.model.expert_model_parallel_size = 16;
  config.model.pipeline_model_parallel_size = 8;
  config.model.virtual_pipeline_model_parallel_size = 2;
  config.train.global_batch_size = 64 * 16;
  config.runtime.world_size = 128;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config.comm_overlap.overlap_p2p_comm = true;
  return config;
}

const grid::Grid& large_grid() {
  static const grid::Grid grid(derive::layout_of(large_config()));
  return grid;
}

const std::vector<schedule::RankPlan>& large_plans() {
  static const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(large_config(), large_grid());
  return plans;
}

Cost some_cost(int, int entry) { return {.seconds = 1e-6 * (1 + entry % 5)}; }

SimulatedStep step_of_stages() {
  SimulatedStep step{.cost = some_cost};
  for (const schedule::RankPlan& plan : large_plans()) step.graphs.push_back(&plan.training);
  step.members = [](int rank, const schedule::Entry& entry) {
    return schedule::stages_of_entry(large_plans().front().anatomy.pipeline, rank, entry);
  };
  return step;
}

SimulatedStep step_of_ranks() {
  SimulatedStep step{.cost = some_cost};
  for (int rank = 0; rank < large_grid().world(); ++rank) {
    const auto stage = static_cast<std::size_t>(large_grid().coordinate(rank).pp);
    step.graphs.push_back(&large_plans()[stage].training);
  }
  step.members = [](int rank, const schedule::Entry& entry) {
    return schedule::ranks_of_entry(large_grid(),
                                    large_plans().front().anatomy.pipeline,
                                    rank,
                                    entry);
  };
  return step;
}

std::vector<grid::Transfer> some_transfers(const schedule::Node& meeting,
                                           std::span<const int> members) {
  if (meeting.piece == schedule::Piece::Send) return {{members[0], members[1], 1'000'000}};
  std::vector<grid::Transfer> transfers;
  for (const int from : members) {
    for (const int to : members) {
      if (from != to) transfers.push_back({from, to, 20'000});
    }
  }
  return transfers;
}

SimulatedStep step_on_a_fabric() {
  SimulatedStep step = step_of_ranks();
  step.wire = Wire{.fabric = {.ranks_per_node = 8,
                              .intra = {.bytes_per_second = 100e9, .latency_seconds = 1e-6},
                              .inter = {.bytes_per_second = 25e9, .latency_seconds = 5e-6}},
                   .transfers = some_transfers};
  return step;
}

void plan(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(schedule::plan_step(large_config(), large_grid()));
  }
}

void verify(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(schedule::verify_plan(large_plans()));
}

void simulate(benchmark::State& state, SimulatedStep (*make)()) {
  const SimulatedStep step = make();
  std::size_t entries = 0;
  for (const schedule::Graph* graph : step.graphs) entries += graph->entries.size();
  for (auto _ : state) benchmark::DoNotOptimize(sim::simulate(step));
  state.counters["entries"] = static_cast<double>(entries);
}

// Checks the timed work: plans are legal, and one rank per stage gives the step of all ranks.
bool holds() {
  return schedule::verify_plan(large_plans()).empty() &&
         sim::simulate(step_of_stages()).step_ns == sim::simulate(step_of_ranks()).step_ns;
}

BENCHMARK(plan)->Unit(benchmark::kMillisecond);
BENCHMARK(verify)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, stages, step_of_stages)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, ranks, step_of_ranks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, ranks_on_a_fabric, step_on_a_fabric)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::exec::sim

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (!weft::exec::sim::holds()) {
    std::fputs("clock_bench: the plans or their simulation are wrong\n", stderr);
    return EXIT_FAILURE;
  }
  benchmark::RunSpecifiedBenchmarks();
  return EXIT_SUCCESS;
}
