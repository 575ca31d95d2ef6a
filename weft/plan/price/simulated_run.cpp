#include "weft/plan/price/simulated_run.h"

#include <cmath>
#include <map>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/exec/sim/simulate.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/cost/node_pricing.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/data_parallel_price.h"
#include "weft/plan/price/layer_prices.h"
#include "weft/plan/price/short_step.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/trace/compute_lane.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using base::number;
using schedule::Entry;

// Link and compute rates of a GPU, for nodes priced by bytes.
NominalRates rates_of_hardware(const config::Config& config, const Hardware& hardware) {
  return {.flops_per_second = hardware.gemm_rate(number_of(config.model)),
          .link_bytes_per_second = hardware.nvlink_gbps * 1e9 * hardware.exchange_share,
          .network_bytes_per_second = hardware.nic_gbps * 1e9 * hardware.nic_share,
          .link_latency_seconds = hardware.nvlink_latency_us * kMicroseconds,
          .memory_bytes_per_second = hardware.memory_rate(),
          .host_link_bytes_per_second = hardware.host_link_rate(),
          .host_memory_bytes_per_second = host_update_rate(config, hardware)};
}

// By pipeline rank and row: the share of a compute node caused by concurrent transfers.
using SlowShares = std::map<std::pair<int, schedule::Node>, double>;

struct NodePrices {
  sim::CostTable costs;
  SlowShares slow;
};

schedule::Node row_of_node(schedule::Node node) {
  node.micro_batch = schedule::kNone;
  return node;
}

// Splits slowed compute spans. A price counts kernels as if alone and the slowdown with the
// transfers; a separate last span shows the same in a trace.
void tell_slow_parts(const SlowShares& slow, std::vector<trace::Timeline>& timelines) {
  for (trace::Timeline& timeline : timelines) {
    std::vector<trace::Span> spans;
    for (trace::Span& span : timeline.spans) {
      spans.push_back(std::move(span));
      trace::Span& whole = spans.back();
      if (trace::is_node(whole) || whole.lane != trace::kComputeLane) continue;
      const auto found = slow.find({timeline.rank, row_of_node(schedule::parse_node(whole.node))});
      if (found == slow.end()) continue;
      trace::Span part = whole;
      part.name = trace::kSlowed;
      part.kind = trace::SpanKind::Communication;
      part.begin_ns =
          whole.end_ns - std::llround(found->second * base::number(whole.end_ns - whole.begin_ns));
      whole.end_ns = part.begin_ns;
      if (part.begin_ns < part.end_ns) spans.push_back(std::move(part));
    }
    timeline.spans = std::move(spans);
  }
}

struct ShortRun {
  double seconds = 0;
  std::vector<trace::Timeline> timelines;
};

enum class Traced { No, Yes };

// Multi-token prediction layers have no schedule: their time is added to the head.
double mtp_seconds(const Entry& entry, const LayerPrices& prices, std::int64_t layers) {
  const schedule::Node& node = entry.node;
  const bool is_logits = node.part == schedule::Part::None || node.part == schedule::Part::Logits;
  if (layers == 0 || node.piece != schedule::Piece::Head || !is_logits) return 0;
  const LayerPrice one = prices.mtp();
  const double weights = one.time.compute().w;
  double seconds = weights;
  if (node.direction == schedule::Direction::F) seconds = one.plain.forward;
  if (node.direction == schedule::Direction::D) seconds = one.plain.backward - weights;
  return number(layers) * seconds;
}

NodeStretch stretch_of(const Entry& entry, const schedule::Anatomy& anatomy, LayerPrices& prices) {
  const schedule::Node& node = entry.node;
  const bool forward = node.direction == schedule::Direction::F;
  if (node.layer == schedule::kNone) {
    const LayerPrice end = node.piece == schedule::Piece::Head ? prices.head() : prices.embed();
    return forward ? end.forward : end.backward;
  }
  int place = 0;
  for (const schedule::Chunk& chunk : anatomy.chunks) {
    if (node.layer >= chunk.first_layer) place = node.layer - chunk.first_layer;
  }
  const LayerPrice& layer = prices.of(node.layer, place);
  return forward ? layer.forward : layer.backward;
}

// Interval of this length in the middle of the timelines.
trace::Interval middle_of(const std::vector<trace::Timeline>& timelines, double seconds) {
  const trace::Interval all = trace::shown_time(timelines);
  const std::int64_t length = std::llround(seconds * 1e9);
  const std::int64_t begin = all.begin + (all.end - all.begin - length) / 2;
  return {begin, begin + length};
}

NodePrices price_nodes(const config::Config& config,
                       const grid::Grid& grid,
                       const std::vector<schedule::RankPlan>& plans,
                       const Hardware& hardware,
                       const Routing& routing) {
  const NominalRates rates = rates_of_hardware(config, hardware);
  NodePrices nodes{.costs = nominal_costs(config, grid, plans, rates), .slow = {}};
  LayerPrices prices(config, hardware, routing, LayerMemory{});
  const std::int64_t mtp = derive::mtp_layers(config.model);
  for (const schedule::RankPlan& plan : plans) {
    NodePricing pricing(config, hardware, routing);
    for (const Entry& entry : plan.training.entries) pricing.note(entry);
    // A row stands for all micro-batches.
    for (const Entry& entry : plan.training.entries) {
      if (entry.node.micro_batch > 0) continue;
      auto cost = pricing.cost(entry, plan.anatomy);
      if (!cost) continue;
      const NodeStretch stretch = stretch_of(entry, plan.anatomy, prices);
      cost->seconds *= stretch.all;
      if (entry.lane == schedule::Lane::Compute) {
        cost->seconds *= stretch.compute;
        cost->launch_share = stretch.launches;
        const bool is_slower = stretch.all > 1;
        if (is_slower) {
          nodes.slow[{plan.anatomy.pp_rank, row_of_node(entry.node)}] = 1 - 1 / stretch.all;
        }
      }
      cost->seconds += mtp_seconds(entry, prices, mtp);
      nodes.costs.set(plan.anatomy.pp_rank, entry.node, *cost);
    }
  }
  return nodes;
}

ShortRun run_short(const config::Config& config,
                   const config::Config& priced,
                   const Hardware& hardware,
                   const Routing& routing,
                   Traced traced) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  config::Config costs = priced;
  costs.train = config.train;
  const NodePrices nodes = price_nodes(costs, grid, plans, hardware, routing);
  const sim::SimulatedStep step = simulated_step(plans, nodes.costs);
  const sim::Result result = sim::simulate(step);
  ShortRun run{.seconds = result.step_seconds(), .timelines = {}};
  if (traced == Traced::No) return run;
  run.timelines = sim::timelines_of(step, result);
  tell_slow_parts(nodes.slow, run.timelines);
  return run;
}

}  // namespace

sim::CostTable hardware_costs(const config::Config& config,
                              const grid::Grid& grid,
                              const std::vector<schedule::RankPlan>& plans,
                              const Hardware& hardware,
                              const Routing& routing) {
  return price_nodes(config, grid, plans, hardware, routing).costs;
}

std::vector<trace::Timeline> whole_timelines(const config::Config& config,
                                             const Hardware& hardware) {
  return run_short(config, config, hardware, {}, Traced::Yes).timelines;
}

SimulatedRun simulate_run(const config::Config& config,
                          const config::Config& priced,
                          const Hardware& hardware,
                          const Routing& routing) {
  SimulatedRun simulated;
  const WholeStep step = whole_step(config, [&](std::int64_t micro_batches) {
    const bool is_shown = simulated.timelines.empty();
    ShortRun run = run_short(with_micro_batches(config, micro_batches),
                             priced,
                             hardware,
                             routing,
                             is_shown ? Traced::Yes : Traced::No);
    if (is_shown) simulated.timelines = std::move(run.timelines);
    return run.seconds;
  });
  simulated.step_ms = step.seconds() * 1e3;
  simulated.shortened = {.micro_batches = step.micro_batches,
                         .shown = step.run,
                         .steady = middle_of(simulated.timelines, step.group_seconds),
                         .repeated = step.repeated};
  return simulated;
}

}  // namespace weft::plan
