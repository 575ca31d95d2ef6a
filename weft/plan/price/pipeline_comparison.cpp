#include "weft/plan/price/pipeline_comparison.h"

#include <algorithm>
#include <array>
#include <optional>

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/missing.h"
#include "weft/rules/validate.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

using config::PipelineSchedule;

constexpr std::array kOrders{PipelineSchedule::OneForwardOneBackward,
                             PipelineSchedule::Interleaved,
                             PipelineSchedule::ZeroBubble,
                             PipelineSchedule::DualPipeV};

std::int64_t chunks_for(PipelineSchedule schedule, const config::ModelConfig& model) {
  switch (schedule) {
    case PipelineSchedule::Auto:
    case PipelineSchedule::OneForwardOneBackward:
    case PipelineSchedule::ZeroBubble:
      return 1;
    case PipelineSchedule::Interleaved:
      return std::max<std::int64_t>(2, derive::virtual_stages(model));
    case PipelineSchedule::DualPipeV:
      return 2;
  }
  return 1;
}

// Config in another order, without the original's settings of exchange and groups.
config::Config in_order(config::Config config, PipelineSchedule schedule) {
  config.model.virtual_pipeline_model_parallel_size = chunks_for(schedule, config.model);
  config.model.microbatch_group_size_per_vp_stage = std::nullopt;
  config.model.overlap_p2p_comm_warmup_flush = false;
  config.comm_overlap.overlap_p2p_comm = config.comm_overlap.batch_p2p_comm = std::nullopt;
  config.comm_overlap.defer_embedding_wgrad_compute = std::nullopt;
  config.runtime.pipeline_schedule = schedule;
  config.runtime.schedule.clear();
  return config;
}

void measure(PipelineOrder& order, const config::Config& config, const CostsOfRun& costs) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  for (const schedule::RankPlan& plan : plans) {
    const schedule::Load load = expected_load(config, plan.anatomy.flow);
    order.activation_bytes = std::max(order.activation_bytes,
                                      schedule::activation_mark(plan.training, plan.anatomy, load));
  }
  const exec::sim::Result result =
      exec::sim::simulate(simulated_step(plans, costs(config, grid, plans)));
  order.step_seconds = result.step_seconds();
  for (const auto& lanes : result.busy_ns) {
    const auto busy =
        static_cast<double>(lanes[static_cast<std::size_t>(schedule::Lane::Compute)]) * 1e-9;
    order.idle += (1 - busy / order.step_seconds) / static_cast<double>(plans.size());
  }
}

}  // namespace

std::vector<PipelineOrder> compare_pipelines(const config::Config& config,
                                             const NominalRates& rates) {
  return compare_pipelines_at(config,
                              [&](const auto&... run) { return nominal_costs(run..., rates); });
}

std::vector<PipelineOrder> compare_pipelines_at(const config::Config& config,
                                                const CostsOfRun& costs) {
  std::vector<PipelineOrder> orders;
  const PipelineSchedule asked = derive::pipeline_schedule(config);
  for (const PipelineSchedule schedule : kOrders) {
    PipelineOrder& order = orders.emplace_back();
    order.schedule = schedule;
    order.is_asked_for = schedule == asked;
    const rules::Verdict verdict =
        rules::judge(order.is_asked_for ? config : in_order(config, schedule));
    order.chunks = derive::virtual_stages(verdict.config.model);
    if (!verdict.legal()) {
      order.refusal = verdict.errors.front().message;
    } else if (const auto limits = rules::schedule_limits(verdict.config); !limits.empty()) {
      order.refusal = limits.front().message;
    } else {
      measure(order, verdict.config, costs);
    }
  }
  return orders;
}

}  // namespace weft::plan
