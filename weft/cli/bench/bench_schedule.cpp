// weft bench schedule: overhead of scheduling: issuing a node, waking another lane, and planning,
// verifying and simulating a step of a large layout.
#include <optional>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/derive/derived.h"
#include "weft/exec/real/executor.h"
#include "weft/exec/sim/simulate.h"
#include "weft/kernels/device.h"
#include "weft/measure/runs/rounds.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/plan.h"

namespace weft::cli {
namespace {

constexpr int kRounds = 5;

void enqueue_nothing(const schedule::Node&, tensor::Stream& stream) {
  stream.enqueue_host("nothing", tensor::WorkClass::Memory, [](tensor::Transfers&) {});
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
  measure::Rounds rounds({.rounds = kRounds});
  const measure::Samples& issue = rounds.add([&] {
    std::optional<double> first;
    double last = 0;
    executor.run(
        [&](const schedule::Node& node, tensor::Stream& stream) {
          last = measure::wall_seconds();
          if (!first) first = last;
          enqueue_nothing(node, stream);
        },
        exec::Tracing::Off);
    return (last - *first) / (static_cast<double>(graph.entries.size()) - 1);
  });
  rounds.run();
  return issue.least();
}

// Time per node of two alternating lanes: a wait for the other lane plus issuing.
double wake_seconds() {
  constexpr int kNodes = 4000;
  const schedule::Graph graph = ping_pong(kNodes);
  const auto device = kernels::make_cpu_device();
  const exec::Lanes lanes(*device, graph);
  exec::Executor executor(graph, lanes);
  const auto run = [&] { executor.run(enqueue_nothing, exec::Tracing::Off); };
  return measure::samples_of({.rounds = kRounds}, run).least() / kNodes;
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
  double simulate_seconds = 0;  // least of several
};

// One rank stands for its stage: their graphs are equal.
LargeCase large_case(const LargeShape& shape) {
  LargeCase result;
  const config::Config config = large_config(shape);
  std::vector<schedule::RankPlan> plans;
  result.plan_seconds = measure::seconds_of(
      [&] { plans = schedule::plan_step(config, grid::Grid(derive::layout_of(config))); });
  std::vector<std::string> complaints;
  result.verify_seconds = measure::seconds_of([&] { complaints = schedule::verify_plan(plans); });
  CHECK(complaints.empty(), "the schedule is wrong: {}", complaints.front());
  for (const schedule::RankPlan& plan : plans) result.nodes += plan.training.entries.size();
  const exec::sim::SimulatedStep step =
      plan::simulated_step(plans, [](int, int) { return exec::sim::Cost{.seconds = 1e-3}; });
  result.simulate_seconds =
      measure::samples_of({.rounds = kRounds}, [&] { exec::sim::simulate(step); }).least();
  return result;
}

// Adds a shape's times, with keys that begin with `prefix`.
double add_large(report::Document& document, const std::string& prefix, const LargeShape& shape) {
  const LargeCase large = large_case(shape);
  report::Document& part = document.section(
      "",
      base::text("{}: {} nodes in {} graphs", shape.name, large.nodes, shape.stages));
  part.json(prefix + "_nodes", large.nodes);
  part.value(prefix + "_plan_ms", "plan", large.plan_seconds * 1e3, {0, "ms"});
  part.value(prefix + "_verify_ms", "verify", large.verify_seconds * 1e3, {0, "ms"});
  part.value(prefix + "_simulate_ms", "simulate", large.simulate_seconds * 1e3, {1, "ms"});
  return large.simulate_seconds;
}

report::Document schedule_document(const config::Config& config, const std::atomic<bool>& stop) {
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
  const schedule::Graph graph = without_host_nodes(plans.front().training);
  report::Document document;
  document.value("issue_us",
                 "issuing a node",
                 issue_seconds(graph) * 1e6,
                 {2, "us"},
                 base::text("{} nodes on their lanes, empty bodies", graph.entries.size()));
  measure::throw_if_stopped(&stop);
  document.value("wake_us",
                 "waking another lane",
                 wake_seconds() * 1e6,
                 {2, "us"},
                 "a node and the wait for it");
  measure::throw_if_stopped(&stop);
  add_large(document, "large", kLarge);
  measure::throw_if_stopped(&stop);
  const double deep = add_large(document, "deep", kDeep);
  document.bars({{.name = "ms to simulate the step of 61 layers",
                  .value = deep * 1e3,
                  .limit = kMostSimulateMs}});
  return document;
}

int run_schedule_bench(const RunArguments& arguments) {
  const words::Resolution run = resolve(arguments);
  print_findings(run);
  config::Config config = run.config;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config = rules::validate(config).config;
  return run_bench(arguments.format,
                   [&](ProgressLine&) { return schedule_document(config, catch_interrupts()); });
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
