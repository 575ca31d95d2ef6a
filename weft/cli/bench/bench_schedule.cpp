// weft bench schedule: overhead of scheduling: issuing a node, waking another lane, and planning,
// verifying and simulating a step of a large layout.
#include <algorithm>
#include <chrono>
#include <limits>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/output.h"
#include "weft/cli/terminal/bar.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/derive/derived.h"
#include "weft/exec/real/executor.h"
#include "weft/exec/sim/simulate.h"
#include "weft/kernels/device.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/plan.h"

namespace weft::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Graph without the nodes that block the host.
schedule::Graph without_host_nodes(const schedule::Graph& graph) {
  schedule::Graph left;
  std::vector<int> place(graph.entries.size(), -1);
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    if (graph.entries[i].lane == schedule::Lane::Host) continue;
    schedule::Entry entry = graph.entries[i];
    std::vector<int> waits;
    for (const int wait : entry.waits) {
      if (place[static_cast<std::size_t>(wait)] >= 0) {
        waits.push_back(place[static_cast<std::size_t>(wait)]);
      }
    }
    entry.waits = std::move(waits);
    place[i] = static_cast<int>(left.entries.size());
    left.entries.push_back(std::move(entry));
  }
  return left;
}

// Nodes that alternate between two lanes, each waiting for the previous one.
schedule::Graph ping_pong(int nodes) {
  schedule::Graph graph;
  for (int i = 0; i < nodes; ++i) {
    graph.entries.push_back(
        {.node = {.layer = i,
                  .direction = schedule::Direction::F,
                  .micro_batch = 0,
                  .piece = i % 2 == 0 ? schedule::Piece::Experts : schedule::Piece::Combine},
         .lane = i % 2 == 0 ? schedule::Lane::Compute : schedule::Lane::Ep,
         .waits = i == 0 ? std::vector<int>{} : std::vector{i - 1}});
  }
  return graph;
}

// Host time per node over a whole graph, with empty bodies.
double issue_seconds(const schedule::Graph& graph) {
  const auto device = kernels::make_cpu_device();
  const exec::Lanes lanes(*device, graph);
  exec::Executor executor(graph, lanes);
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    Clock::time_point first, last;
    executor.run(
        [&](const schedule::Node&, tensor::Stream& stream) {
          last = Clock::now();
          if (first == Clock::time_point()) first = last;
          stream.enqueue_host("nothing", tensor::WorkClass::Memory, [](tensor::Transfers&) {});
        },
        exec::Tracing::Off);
    const double nodes = static_cast<double>(graph.entries.size()) - 1;
    best = std::min(best, std::chrono::duration<double>(last - first).count() / nodes);
  }
  return best;
}

// Time per node of two alternating lanes: a wait for the other lane plus issuing.
double wake_seconds() {
  constexpr int kNodes = 4000;
  const schedule::Graph graph = ping_pong(kNodes);
  const auto device = kernels::make_cpu_device();
  const exec::Lanes lanes(*device, graph);
  exec::Executor executor(graph, lanes);
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    executor.run(
        [](const schedule::Node&, tensor::Stream& stream) {
          stream.enqueue_host("nothing", tensor::WorkClass::Memory, [](tensor::Transfers&) {});
        },
        exec::Tracing::Off);
    best = std::min(best, seconds_since(start) / kNodes);
  }
  return best;
}

struct LargeShape {
  const char* name;
  std::int64_t layers, stages, micro_batches;
  const char* layout;  // empty: equal numbers of layers
};
// Two chunks per stage, sixteen ranks that share their experts.
constexpr LargeShape kLarge{"pp 8, vpp 2, ep 16, 48 layers, 64 micro-batches", 48, 8, 64, ""};
constexpr LargeShape kDeep{"pp 16, vpp 2, ep 16, 61 layers, 128 micro-batches",
                           61,
                           16,
                           128,
                           "Et*2|(t*2|)*29t|L"};
constexpr double kMostSimulateMs = 100;  // limit for the second shape

config::Config large_config(const LargeShape& shape) {
  constexpr std::int64_t kExpertRanks = 16;
  config::Config config;
  config.model.num_layers = shape.layers;
  config.model.num_moe_experts = 128;
  config.model.pipeline_model_parallel_size = shape.stages;
  config.model.virtual_pipeline_model_parallel_size = 2;
  config.model.pipeline_model_parallel_layout = shape.layout;
  config.model.expert_model_parallel_size = kExpertRanks;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config.runtime.world_size = shape.stages * kExpertRanks;
  config.train.global_batch_size = shape.micro_batches * kExpertRanks;
  return config;
}

struct LargeCase {
  std::size_t nodes = 0;
  double plan_seconds = 0, verify_seconds = 0;
  double simulate_seconds = 0;  // best of several
};

// One rank stands for its stage: their graphs are equal.
LargeCase large_case(const LargeShape& shape) {
  constexpr int kTimes = 5;
  LargeCase result;
  const config::Config config = large_config(shape);
  Clock::time_point start = Clock::now();
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
  result.plan_seconds = seconds_since(start);
  start = Clock::now();
  const std::vector<std::string> complaints = schedule::verify_plan(plans);
  result.verify_seconds = seconds_since(start);
  CHECK(complaints.empty(), "the schedule is wrong: {}", complaints.front());
  for (const schedule::RankPlan& plan : plans) result.nodes += plan.training.entries.size();
  const exec::sim::SimulatedStep step =
      plan::simulated_step(plans, [](int, int) { return exec::sim::Cost{.seconds = 1e-3}; });
  result.simulate_seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTimes; ++i) {
    start = Clock::now();
    exec::sim::simulate(step);
    result.simulate_seconds = std::min(result.simulate_seconds, seconds_since(start));
  }
  return result;
}

std::string large_text(const LargeShape& shape, const LargeCase& large) {
  return base::text(
      "{}: {} nodes in {} graphs\n  plan                {:8.0f} ms\n  verify              {:8.0f} "
      "ms\n  simulate            {:8.1f} ms\n",
      shape.name,
      large.nodes,
      shape.stages,
      large.plan_seconds * 1e3,
      large.verify_seconds * 1e3,
      large.simulate_seconds * 1e3);
}

Bar simulate_bar(const LargeCase& deep) {
  return {.name = "ms to simulate the step of 61 layers",
          .value = deep.simulate_seconds * 1e3,
          .limit = kMostSimulateMs};
}

int run_schedule_bench(const RunArguments& arguments) {
  const std::atomic<bool>& stop = catch_interrupts();
  const words::Resolution run = resolve(arguments);
  print_findings(run);
  config::Config config = run.config;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config = rules::validate(config).config;
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
  const schedule::Graph graph = without_host_nodes(plans.front().training);
  const double issue = issue_seconds(graph);
  if (stop.load()) return stopped_bench(arguments.format);
  const double wake = wake_seconds();
  if (stop.load()) return stopped_bench(arguments.format);
  const LargeCase large = large_case(kLarge);
  if (stop.load()) return stopped_bench(arguments.format);
  const LargeCase deep = large_case(kDeep);
  if (stop.load()) return stopped_bench(arguments.format);
  const Bar bar = simulate_bar(deep);
  const ExitCode end = bar.met() ? kGood : kFailed;
  if (arguments.format == Format::Json) {
    print_json({{"issue_us", issue * 1e6},
                {"wake_us", wake * 1e6},
                {"large_nodes", large.nodes},
                {"large_plan_ms", large.plan_seconds * 1e3},
                {"large_verify_ms", large.verify_seconds * 1e3},
                {"large_simulate_ms", large.simulate_seconds * 1e3},
                {"deep_nodes", deep.nodes},
                {"deep_plan_ms", deep.plan_seconds * 1e3},
                {"deep_verify_ms", deep.verify_seconds * 1e3},
                {"deep_simulate_ms", deep.simulate_seconds * 1e3},
                {"bars", base::Json::array({to_json(bar)})}});
    return end;
  }
  print_text(
      base::text("issuing a node        {:8.2f} us  ({} nodes on their lanes, empty bodies)\n",
                 issue * 1e6,
                 graph.entries.size()));
  print_text(
      base::text("waking another lane   {:8.2f} us  (a node and the wait for it)\n", wake * 1e6));
  print_text(large_text(kLarge, large));
  print_text(large_text(kDeep, deep));
  print_text(to_text(bar) + "\n");
  return end;
}

}  // namespace

void add_bench_schedule(CLI::App& bench, Action& chosen) {
  CLI::App* schedule = bench.add_subcommand("schedule",
                                            "what deciding costs: issuing, waking, and planning, "
                                            "verifying and simulating 128 and 256 ranks");
  auto options = std::make_shared<RunArguments>(RunArguments{.default_recipe = "overlap_bench"});
  add_run_arguments(*schedule, *options, "weft bench schedule");
  on_chosen(*schedule, chosen, std::move(options), run_schedule_bench);
}

}  // namespace weft::cli
