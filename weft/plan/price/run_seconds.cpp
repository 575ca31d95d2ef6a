#include "weft/plan/price/run_seconds.h"

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/plan/cost/calibrated_node.h"
#include "weft/plan/price/short_step.h"

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Entry;
using schedule::Piece;

bool is_communication(const Entry& entry) {
  const Piece piece = entry.node.piece;
  return entry.lane == schedule::Lane::Ep && (piece == Piece::Dispatch || piece == Piece::Combine);
}

void add_travel(const NodeSeconds& seconds, RunSeconds& all) {
  ++all.dispatches;
  all.dispatch_calls += seconds.link_call;
  all.dispatch_bytes += seconds.link_bytes;
}

}  // namespace

RunSeconds run_seconds(const config::Config& config, const Calibration& calibration) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  const WorkTable works = node_works(config, grid, plans);
  const MachineRates& rates = calibration.rates;
  RunSeconds all;
  for (const schedule::RankPlan& plan : plans) {
    for (const Entry& entry : plan.training.entries) {
      schedule::Node row = entry.node;
      const bool is_again = row.direction == Direction::R;
      if (row.micro_batch == schedule::kNone || is_again) continue;
      row.micro_batch = schedule::kNone;
      const NodeWork& work = works.at({plan.anatomy.pp_rank, row});
      const NodeFactor factor = known_factor(calibration, row).value_or(NodeFactor{});
      const NodeSeconds seconds = node_seconds(work, row.direction, factor, rates);
      if (is_communication(entry)) add_travel(seconds, all);
      if (entry.lane != schedule::Lane::Compute) continue;
      all.products += rates.untraced * seconds.product;
      const bool is_forward = row.direction == Direction::F;
      (is_forward ? all.attention_forward : all.attention_backward) +=
          rates.untraced * seconds.attention;
      const double calls =
          work.memory_bytes > 0 ? factor.memory * factor.memory_calls * rates.memory_call : 0;
      all.memory_calls += rates.untraced * calls;
      all.memory_bytes += rates.untraced * (seconds.memory - calls);
    }
  }
  return all;
}

RunKernels run_kernels(const config::Config& config) {
  const Workload work = workload_of(config);
  RunKernels run{.kernels = embed_kernels(config, work),
                 .micro_batches = base::number(micro_batches_of(config))};
  const auto add = [&](const std::vector<Kernel>& more) {
    run.kernels.insert(run.kernels.end(), more.begin(), more.end());
  };
  for (std::int64_t layer = 0; layer < config.model.num_layers; ++layer) {
    add(layer_kernels(config, work, layer));
  }
  add(head_kernels(config, work));
  return run;
}

}  // namespace weft::plan
