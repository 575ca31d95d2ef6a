#include "weft/plan/simulated_run.h"

#include <algorithm>
#include <map>
#include <optional>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/exec/sim/simulate.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/kernel_work.h"
#include "weft/plan/nominal_costs.h"
#include "weft/plan/short_step.h"
#include "weft/plan/simulated_step.h"
#include "weft/plan/wire_time.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using base::number;
using schedule::Direction;
using schedule::Entry;
using schedule::kNone;
using schedule::Node;
using schedule::Part;
using schedule::Piece;

// Seconds of a piece in one direction: all of it, and by part.
struct PieceCost {
  double all = 0, products = 0;
  std::map<Part, double> parts;
};
using PieceCosts = std::map<std::pair<Piece, Direction>, PieceCost>;

PieceCosts costs_of_kernels(const std::vector<Kernel>& kernels, const Hardware& hardware) {
  PieceCosts costs;
  for (const Kernel& kernel : kernels) {
    const double seconds = device_seconds(kernel, hardware);
    PieceCost& cost = costs[{kernel.piece, kernel.direction}];
    cost.all += seconds;
    cost.parts[kernel.part] += seconds;
    if (kernel.kind != KernelKind::Memory) cost.products += seconds;
  }
  return costs;
}

// The links and rates of a GPU, for what is priced by bytes alone.
NominalRates rates_of_hardware(const Hardware& hardware, Number number) {
  return {.flops_per_second = hardware.gemm_rate(number),
          .link_bytes_per_second = hardware.nvlink_gbps * 1e9 * hardware.exchange_share,
          .network_bytes_per_second = hardware.nic_gbps * 1e9 * hardware.nic_share,
          .link_latency_seconds = hardware.nvlink_latency_us * kMicroseconds,
          .memory_bytes_per_second = hardware.memory_rate()};
}

// The costs of one pipeline rank's nodes.
class NodePricing {
 public:
  NodePricing(const config::Config& config, const Hardware& hardware)
      : config_(config), hardware_(hardware), work_(workload_of(config)) {
    wire_ = dispatch_seconds(config.model, work_, hardware);
  }

  // Which parts of a piece are nodes of their own, so that the others' time goes to them.
  void note(const Entry& entry) {
    const Node& node = entry.node;
    if (node.part != Part::None) seen_[{node.piece, node.direction}][node.part] = true;
  }

  // What kernels or wires say of a node; nothing where they say nothing.
  std::optional<sim::Cost> cost(const Entry& entry, const schedule::Anatomy& anatomy) {
    const Node& node = entry.node;
    if (node.micro_batch == kNone || schedule::is_exchange(node)) return std::nullopt;
    const double share = 1.0 / nodes_beside(node, anatomy);
    if (node.piece == Piece::Dispatch || node.piece == Piece::Combine) {
      return sim::Cost{.seconds = wire_ * share, .kind = trace::SpanKind::Communication};
    }
    if (entry.lane != schedule::Lane::Compute) return std::nullopt;
    const PieceCosts& costs = costs_at(node);
    const Direction direction = node.direction == Direction::R ? Direction::F : node.direction;
    const auto found = costs.find({node.piece, direction});
    if (found == costs.end()) return std::nullopt;
    const PieceCost& cost = found->second;
    const double seconds = node.part == Part::None ? cost.all : seconds_of_part(node, cost);
    const bool computes = cost.products > cost.all / 2;
    return sim::Cost{.seconds = seconds * share,
                     .kind = computes ? trace::SpanKind::Gemm : trace::SpanKind::Memory};
  }

 private:
  // Slices of the tokens, or steps, that a node is one of.
  static double nodes_beside(const Node& node, const schedule::Anatomy& anatomy) {
    if (node.slice == kNone) return 1;
    const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy, node);
    return piece.runs_in_steps(node.direction) ? piece.steps->count : anatomy.flow.slices;
  }

  double seconds_of_part(const Node& node, const PieceCost& cost) const {
    const auto own = cost.parts.find(node.part);
    if (own == cost.parts.end()) return 0;
    double told = 0;
    for (const auto& [part, is_seen] : seen_.at({node.piece, node.direction})) {
      const auto found = cost.parts.find(part);
      if (found != cost.parts.end()) told += found->second;
    }
    return own->second * cost.all / told;
  }

  const PieceCosts& costs_at(const Node& node) {
    const int place = node.layer == kNone && node.piece == Piece::Head ? -2 : node.layer;
    const auto found = layers_.find(place);
    if (found != layers_.end()) return found->second;
    const std::vector<Kernel> kernels = place == -2      ? head_kernels(config_, work_)
                                        : place == kNone ? embed_kernels(config_, work_)
                                                         : layer_kernels(config_, work_, place);
    return layers_.emplace(place, costs_of_kernels(kernels, hardware_)).first->second;
  }

  const config::Config& config_;
  const Hardware& hardware_;
  Workload work_;
  double wire_ = 0;
  std::map<std::pair<Piece, Direction>, std::map<Part, bool>> seen_;
  std::map<int, PieceCosts> layers_;
};

struct ShortRun {
  double seconds = 0;
  std::vector<trace::Timeline> timelines;
};

enum class Traced { No, Yes };

// What the host takes for a node, with its kernels spread evenly over the nodes.
double issue_seconds(const config::Config& config,
                     const Hardware& hardware,
                     const std::vector<schedule::RankPlan>& plans) {
  if (config.model.cuda_graph_impl == config::CudaGraphImpl::FullIteration) return 0;
  const Workload work = workload_of(config);
  double launches = 0, nodes = 0;
  for (const Kernel& kernel : layer_kernels(config, work, config.model.num_layers - 1)) {
    launches += kernel.launches;
  }
  for (const Entry& entry : plans.front().training.entries) {
    const bool is_first = entry.node.micro_batch == 0 &&
                          entry.node.layer == plans.front().anatomy.chunks.front().first_layer;
    if (is_first) ++nodes;
  }
  return nodes == 0 ? 0 : launches / nodes * hardware.launch_us * kMicroseconds;
}

ShortRun run_short(const config::Config& config,
                   const config::Config& priced,
                   const Hardware& hardware,
                   Traced traced) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  config::Config costs = priced;
  costs.train = config.train;
  const sim::SimulatedStep step =
      simulated_step(plans,
                     hardware_costs(costs, grid, plans, hardware),
                     {.issue_seconds = issue_seconds(priced, hardware, plans)});
  const sim::Result result = sim::simulate(step);
  ShortRun run{.seconds = result.step_seconds(), .timelines = {}};
  if (traced == Traced::Yes) run.timelines = sim::timelines_of(step, result);
  return run;
}

}  // namespace

sim::CostTable hardware_costs(const config::Config& config,
                              const grid::Grid& grid,
                              const std::vector<schedule::RankPlan>& plans,
                              const Hardware& hardware) {
  const NominalRates rates = rates_of_hardware(hardware, number_of(config.model));
  sim::CostTable table = nominal_costs(config, grid, plans, rates);
  for (const schedule::RankPlan& plan : plans) {
    NodePricing pricing(config, hardware);
    for (const Entry& entry : plan.training.entries) pricing.note(entry);
    for (const Entry& entry : plan.training.entries) {
      const auto cost = pricing.cost(entry, plan.anatomy);
      if (cost) table.set(plan.anatomy.pp_rank, entry.node, *cost);
    }
  }
  return table;
}

SimulatedRun simulate_run(const config::Config& config,
                          const config::Config& priced,
                          const Hardware& hardware) {
  const std::int64_t all = micro_batches_of(config);
  const std::int64_t few = fewest_micro_batches(config.model, all);
  ShortRun run = run_short(with_micro_batches(config, few), priced, hardware, Traced::Yes);
  SimulatedRun simulated{.micro_batches = all,
                         .run = few,
                         .step_ms = run.seconds * 1e3,
                         .run_ms = run.seconds * 1e3,
                         .timelines = std::move(run.timelines)};
  if (few == all) return simulated;
  const std::int64_t more = std::min(all, few + derive::micro_batch_group(config.model));
  const ShortRun longer = run_short(with_micro_batches(config, more), priced, hardware, Traced::No);
  const double each = (longer.seconds - run.seconds) / number(more - few);
  simulated.step_ms += each * number(all - few) * 1e3;
  return simulated;
}

}  // namespace weft::plan
