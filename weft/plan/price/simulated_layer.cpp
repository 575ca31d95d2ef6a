#include "weft/plan/price/simulated_layer.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/cost/layers_alone.h"
#include "weft/plan/cost/node_pricing.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/memory/offloaded_layers.h"
#include "weft/plan/price/short_step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using config::Config;
using schedule::Direction;
using schedule::Entry;
using schedule::Lane;

// Lanes counted while compute is idle; the first active one counts.
constexpr std::array<Lane, 5> kCounted{Lane::Tp, Lane::Cp, Lane::Ep, Lane::Copy, Lane::CopyIn};

double& of_lane(Stretch& stretch, Lane lane) {
  if (lane == Lane::Tp) return stretch.tp;
  if (lane == Lane::Cp) return stretch.cp;
  return lane == Lane::Ep ? stretch.ep : stretch.copy;
}

using Intervals = std::vector<sim::Interval>;

// Returns the part of the gaps inside the intervals and removes it from the gaps. Both ascend.
double take_covered(const Intervals& intervals, Intervals& gaps) {
  Intervals left;
  std::int64_t covered = 0;
  auto first = intervals.begin();
  for (const sim::Interval& gap : gaps) {
    std::int64_t from = gap.begin_ns;
    while (first != intervals.end() && first->end_ns <= gap.begin_ns) ++first;
    for (auto each = first; each != intervals.end() && each->begin_ns < gap.end_ns; ++each) {
      const std::int64_t begin = std::max(from, each->begin_ns);
      const std::int64_t end = std::min(gap.end_ns, each->end_ns);
      if (end <= begin) continue;
      if (begin > from) left.push_back({from, begin});
      covered += end - begin;
      from = end;
    }
    if (from < gap.end_ns) left.push_back({from, gap.end_ns});
  }
  gaps = std::move(left);
  return static_cast<double>(covered) * 1e-9;
}

// Size of a small run.
struct RunSize {
  std::int64_t layers = 1, micro_batches = 1;
};

// Small run with its node costs.
class SmallRun {
 public:
  SmallRun(Config alone,
           NodePricing pricing,
           const RunSize& size,
           const NominalRates& rates,
           const OffloadedParts& offloaded)
      : config_(with_micro_batches(std::move(alone), size.micro_batches)) {
    config_.model.num_layers = size.layers;
    const grid::Grid grid(derive::layout_of(config_));
    CHECK(grid.pp() == 1, "{} pipeline ranks", grid.pp());
    plans_ = schedule::plan_training(config_,
                                     grid,
                                     {0},
                                     config::RowBudget::AsConfigured,
                                     detail_with(offloaded));
    for (const Entry& entry : entries()) pricing.note(entry);
    std::optional<sim::CostTable> nominal;
    for (const Entry& entry : entries()) {
      std::optional<sim::Cost> cost = pricing.cost(entry, plans_.front().anatomy);
      const bool is_copied = schedule::is_copy(entry.lane) && entry.node.layer != schedule::kNone;
      if (is_copied) {
        if (!nominal) nominal = nominal_costs(config_, grid, plans_, rates);
        cost = *nominal->find(0, entry.node);
      }
      costs_.push_back(cost.value_or(sim::Cost{}));
    }
  }

  // Times with compute slowed by a factor: the whole step, and its part until the last forward
  // ends.
  struct Times {
    Stretch step, forward;
    double compute = 0, communication = 0;  // seconds of nodes, without the factor
    double out = 0, in = 0;                 // copies to the host, and back
  };
  Times run(double slowdown) const {
    sim::SimulatedStep step;
    step.graphs = {&plans_.front().training};
    step.members = [](int rank, const Entry&) { return std::vector{rank}; };
    step.cost = [&](int, int entry) {
      sim::Cost cost = costs_[base::at(entry)];
      if (entries()[base::at(entry)].lane == Lane::Compute) cost.seconds *= slowdown;
      return cost;
    };
    const sim::Result result = sim::simulate(step);
    Times times;
    times.step = stretch_until(result, result.step_ns);
    times.forward = stretch_until(result, end_of_forwards(result));
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      if (entries()[i].lane == Lane::Compute) times.compute += costs_[i].seconds;
      if (entries()[i].lane == Lane::Ep) times.communication += costs_[i].seconds;
      if (entries()[i].lane == Lane::Copy) times.out += costs_[i].seconds;
      if (entries()[i].lane == Lane::CopyIn) times.in += costs_[i].seconds;
    }
    return times;
  }

 private:
  const std::vector<Entry>& entries() const { return plans_.front().training.entries; }

  std::int64_t end_of_forwards(const sim::Result& result) const {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      if (entries()[i].node.direction != Direction::F) continue;
      end = std::max(end, result.entries.front()[i].end_ns);
    }
    return end;
  }

  Stretch stretch_until(const sim::Result& result, std::int64_t end_ns) const {
    std::map<Lane, Intervals> lanes;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      const sim::Interval& interval = result.entries.front()[i];
      if (interval.end_ns > interval.begin_ns) lanes[entries()[i].lane].push_back(interval);
    }
    Intervals gaps{{0, end_ns}};
    take_covered(lanes[Lane::Compute], gaps);
    Stretch stretch{.total = static_cast<double>(end_ns) * 1e-9};
    for (const Lane lane : kCounted) of_lane(stretch, lane) += take_covered(lanes[lane], gaps);
    return stretch;
  }

  Config config_;
  std::vector<schedule::RankPlan> plans_;
  std::vector<sim::Cost> costs_;
};

// Four small runs of merged layers, for the time of one more layer of one more micro-batch.
class MergedRuns {
 public:
  template <typename MakeRun>
  MergedRuns(const MakeRun& make, std::int64_t more)
      : few_{make({kFewMerged, 3}), make({kFewMerged, 4})},
        many_{make({kFewMerged + more, 3}), make({kFewMerged + more, 4})},
        share_(1 / base::number(more)) {}

  struct Period {
    Stretch layer, round;
    double compute = 0, communication = 0;  // nodes of a layer
  };
  Period at(double slowdown) const {
    const auto more = [&](const std::array<SmallRun, 2>& runs) {
      const SmallRun::Times fewer = runs[0].run(slowdown), all = runs[1].run(slowdown);
      return Period{.layer = {},
                    .round = all.step - fewer.step,
                    .compute = all.compute - fewer.compute,
                    .communication = all.communication - fewer.communication};
    };
    const Period few = more(few_), many = more(many_);
    Period period{.layer = (many.round - few.round) * share_,
                  .round = {},
                  .compute = (many.compute - few.compute) * share_,
                  .communication = (many.communication - few.communication) * share_};
    period.round = few.round - period.layer * base::number(kFewMerged);
    return period;
  }

 private:
  static constexpr std::int64_t kFewMerged = 2;  // layers

  std::array<SmallRun, 2> few_, many_;
  double share_;  // a layer's share of the difference between two runs
};

// Copies use device memory beside compute and slow it by their share of the bandwidth. The slowdown
// counts as copy time.
void slow_beside_copies(double seconds, const Hardware& hardware, Stretch& stretch) {
  const double hidden = std::max(0.0, seconds - stretch.copy);
  const double taken = hidden * hardware.host_link_rate() / hardware.memory_rate();
  stretch.total += taken;
  stretch.copy += taken;
}

// Additional layers of the longer run: several if only some layers offload, so that they include
// offloading ones.
std::int64_t layers_more(const OffloadedParts& offloaded) {
  constexpr std::int64_t kSomeOffload = 3;
  const bool all = std::ranges::all_of(offloaded, [](const auto& part) { return part.share >= 1; });
  return all ? 1 : kSomeOffload;
}

// Offloaded parts of the run that such a layer has.
OffloadedParts offloaded_by(const Config& config, std::int64_t layer, Recomputed whole) {
  OffloadedParts parts = offloaded_parts(config);
  if (parts.empty()) return parts;
  const std::vector<OffloadablePart> own = offloadable_parts(config, layer, whole);
  std::erase_if(parts, [&](const schedule::OffloadedPart& part) {
    return std::ranges::find(own, part.name, &OffloadablePart::name) == own.end();
  });
  return parts;
}

}  // namespace

SimulatedLayer simulate_layer(const Config& config,
                              const Hardware& hardware,
                              const Routing& routing,
                              std::int64_t layer,
                              Recomputed whole) {
  const Config alone = layers_alone(config, layer, whole);
  const NodePricing pricing(config, hardware, routing, layer);
  const OffloadedParts offloaded = offloaded_by(config, layer, whole);
  NominalRates rates;
  rates.host_link_bytes_per_second = hardware.host_link_rate();
  const auto make = [&](const RunSize& size) {
    return SmallRun(alone, pricing, size, rates, offloaded);
  };
  // The last layer of a run is never offloaded.
  const std::int64_t few = offloaded.empty() ? 1 : 2, more = layers_more(offloaded);
  const SmallRun::Times one = make({few, 1}).run(1), two = make({few + more, 1}).run(1);
  const double share = 1 / base::number(more);
  SimulatedLayer result;
  result.forward = (two.forward - one.forward) * share;
  result.backward = (two.step - one.step) * share - result.forward;
  const double out = (two.out - one.out) * share, in = (two.in - one.in) * share;
  slow_beside_copies(out, hardware, result.forward);
  slow_beside_copies(in, hardware, result.backward);
  const bool merges = alone.comm_overlap.overlap_moe_expert_parallel_comm;
  if (!merges || alone.model.experts() == 0) return result;
  const MergedRuns runs(make, more);
  // Compute is slower beside a transfer; the pair determines for how long.
  const MergedRuns::Period free = runs.at(1);
  const double hidden = std::max(0.0, free.communication - free.layer.ep);
  const double beside = free.compute > 0 ? std::min(1.0, hidden / free.compute) : 0;
  const double slowdown = 1 + transfer_share(config.model, hardware) * beside;
  const MergedRuns::Period period = runs.at(slowdown);
  result.merged = period.layer;
  slow_beside_copies(out + in, hardware, result.merged);
  // The transfers' slowdown of compute counts as transfer time.
  result.merged.ep += std::max(0.0, (slowdown - 1) * free.compute);
  result.round = period.round;
  result.merged_undisturbed = free.layer.total;
  return result;
}

const SimulatedLayer& SimulatedLayers::of(const std::string& name,
                                          const std::function<SimulatedLayer()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(name);
    if (found != known_.end()) return found->second;
  }
  SimulatedLayer layer = make();
  const std::lock_guard lock(mutex_);
  return known_.emplace(name, layer).first->second;
}

}  // namespace weft::plan
