#include "weft/schedule/plan.h"

#include <numeric>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/dispatch.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/memory/offload_share.h"
#include "weft/schedule/memory/savings.h"
#include "weft/schedule/passes/data_parallel.h"
#include "weft/schedule/passes/interleave.h"
#include "weft/schedule/passes/offload.h"
#include "weft/schedule/passes/offloaded_optimizer.h"
#include "weft/schedule/passes/parts.h"
#include "weft/schedule/passes/point_to_point.h"
#include "weft/schedule/passes/recompute.h"
#include "weft/schedule/passes/ring_ahead.h"
#include "weft/schedule/passes/rows_ahead.h"
#include "weft/schedule/passes/shared_experts.h"
#include "weft/schedule/passes/slices.h"
#include "weft/schedule/passes/snapshot.h"
#include "weft/schedule/passes/tensor_overlap.h"
#include "weft/schedule/passes/weight_gradients.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace {

Sums sums_over(int ranks) { return ranks > 1 ? Sums::OverRanks : Sums::None; }

// Dtype of narrowed gradients in flight; Fp32: not narrowed.
base::DType narrowed_wire(const config::Config& config) {
  const base::DType wire = derive::gradient_wire(config);
  return wire == derive::main_gradients(config) ? base::DType::F32 : wire;
}

TurnOrder order_of(const config::Config& config) {
  switch (derive::pipeline_schedule(config)) {
    case config::PipelineSchedule::Auto:
    case config::PipelineSchedule::OneForwardOneBackward:
    case config::PipelineSchedule::Interleaved:
      return TurnOrder::OneForwardOneBackward;
    case config::PipelineSchedule::ZeroBubble:
      return TurnOrder::ZeroBubble;
    case config::PipelineSchedule::DualPipeV:
      return TurnOrder::DualPipeV;
  }
  UNREACHABLE("pipeline schedule {}", static_cast<int>(derive::pipeline_schedule(config)));
}

// Without dispatch between ranks, tokens are not sliced.
int token_slices(const config::Config& config) {
  const bool travel = config.model.tokens_travel();
  return travel ? static_cast<int>(config.comm_overlap.moe_token_slices) : 1;
}

TensorExchange exchange_of(const config::Config& config, const grid::Grid& grid) {
  const bool in_steps = grid.tp() > 1 && config.comm_overlap.tp_comm_overlap;
  return in_steps ? TensorExchange::InSteps : TensorExchange::Whole;
}

WeightGradients weight_gradients_of(const config::Config& config) {
  switch (order_of(config)) {
    case TurnOrder::OneForwardOneBackward:
      return config.comm_overlap.delay_wgrad_compute ? WeightGradients::Delayed
                                                     : WeightGradients::Follow;
    case TurnOrder::ZeroBubble:
      return WeightGradients::InTurns;
    case TurnOrder::DualPipeV:
      return WeightGradients::Delayed;
  }
  UNREACHABLE("order {}", static_cast<int>(order_of(config)));
}

// Machines that rows cross to before they are forwarded; 1: one hop, or machines do not matter.
int machines_of(const config::Config& config) {
  return static_cast<int>(derive::machines_of_hops(config).value_or(1));
}

FirstCombine first_combine_of(const config::Config& config) {
  const bool is_delayed = config.comm_overlap.delay_wgrad_compute;
  const bool is_deferred = config.comm_overlap.defer_embedding_wgrad_compute.value_or(false);
  return is_delayed && !is_deferred ? FirstCombine::BesideHead : FirstCombine::BesideAttention;
}

Graph training_graph(const config::Config& config,
                     const Anatomy& anatomy,
                     const PipelineShape& shape) {
  const int micro_batches = shape.micro_batches;
  Graph graph = build_training(anatomy, shape);
  const DispatchBeside beside = dispatch_beside(config.model);
  if (config.comm_overlap.overlap_moe_expert_parallel_comm) {
    graph =
        interleave_turns(graph,
                         anatomy,
                         shape,
                         beside,
                         config.model.ep_overlap_early_attn_memory_release ? AttentionRelease::Early
                                                                           : AttentionRelease::Late,
                         first_combine_of(config));
  } else if (anatomy.flow.slices > 1) {
    graph = stagger_slices(graph, anatomy, micro_batches);
  }
  if (config.model.moe_shared_expert_overlap) {
    graph = overlap_shared_experts(graph, anatomy, micro_batches);
  }
  if (config.comm_overlap.delay_wgrad_compute) {
    graph = delay_weight_gradients(graph, anatomy, micro_batches, beside);
  }
  if (config.model.overlap_dispatch_backward_with_experts_wgrad) {
    graph = delay_expert_gradients(graph, anatomy, micro_batches);
  }
  if (anatomy.pipeline.pp == 1) return graph;
  const FirstReceive first =
      config.model.overlap_p2p_comm_warmup_flush ? FirstReceive::AtOnce : FirstReceive::InItsPlace;
  graph = derive::overlaps_p2p(config) ? prefetch_receives(graph, anatomy, micro_batches, first)
                                       : batch_exchanges(graph, anatomy, shape);
  if (config.comm_overlap.defer_embedding_wgrad_compute.value_or(false)) {
    const std::int64_t limit = config.comm_overlap.wgrad_deferral_limit.value_or(0);
    graph = defer_head_gradients(graph, anatomy, micro_batches, static_cast<int>(limit));
  }
  return graph;
}

void add_detail(RankPlan& plan, const Detail& detail) {
  const int micro_batches = plan.shape.micro_batches;
  if (!detail.split.empty()) {
    plan.anatomy = with_parts(std::move(plan.anatomy), detail.split);
    plan.training = split_parts(plan.training, plan.anatomy, micro_batches);
  }
  const std::vector<PieceName> always = always_recomputed(plan.anatomy);
  if (always.empty() && detail.recomputed.empty()) return;
  plan.anatomy = with_recomputation(std::move(plan.anatomy), always);
  plan.anatomy =
      with_recomputation(std::move(plan.anatomy), detail.recomputed, detail.recomputed_layers);
  plan.anatomy = with_grouped_layers(std::move(plan.anatomy), detail.recomputed_group);
  plan.training = recompute(plan.training, plan.anatomy, micro_batches);
  plan.training = bring_rows_ahead(std::move(plan.training), plan.anatomy, micro_batches);
  if (plan.anatomy.flow.exchange == TensorExchange::InSteps) {
    plan.training = overlap_tensor_exchange(plan.training, plan.anatomy, micro_batches);
  }
}

// Pipeline ranks of a send or a receive, the sender first.
std::vector<int> ends_of(const derive::Pipeline& pipeline, const Node& node) {
  const int stage = meeting_of(node).chunk;
  const int next = stage + (node.direction == Direction::F ? 1 : -1);
  return {pipeline.rank_of(stage), pipeline.rank_of(next)};
}

// Places the exchanges between data-parallel ranks; the last pass.
void overlap_exchanges(const config::Config& config, RankPlan& plan) {
  const config::DdpConfig& ddp = config.ddp;
  const bool gathers = ddp.use_distributed_optimizer && ddp.overlap_param_gather;
  if (!ddp.overlap_grad_reduce && !gathers) return;
  if (gathers) {
    const bool under_optimizer = config.optimizer.overlap_param_gather_with_optimizer_step;
    plan.anatomy =
        with_gathers_ahead(std::move(plan.anatomy),
                           under_optimizer ? FirstGather::UnderOptimizer : FirstGather::NextStep);
  }
  plan.training =
      place_exchanges(plan.training,
                      plan.anatomy,
                      plan.shape,
                      ddp.overlap_grad_reduce ? ReduceStart::Early : ReduceStart::AtEnd,
                      ddp.align_param_gather ? GatherStart::Aligned : GatherStart::OneAhead);
}

MembersOf members_of(const std::vector<RankPlan>& plans) {
  return [pipeline = plans.front().anatomy.pipeline](int rank, const Entry& entry) {
    return stages_of_entry(pipeline, rank, entry);
  };
}

// Complaints of a verification of all ranks together, about training and forward graphs.
std::vector<std::string> complaints_of_all(const std::vector<RankPlan>& plans,
                                           decltype(verify_union)& verification) {
  const MembersOf members = members_of(plans);
  std::vector<std::string> complaints;
  for (const auto graph : {&RankPlan::training, &RankPlan::forward}) {
    std::vector<const Graph*> graphs;
    for (const RankPlan& plan : plans) graphs.push_back(&(plan.*graph));
    for (std::string& complaint : complaints_of(verification(graphs, members), graphs)) {
      complaints.push_back(std::move(complaint));
    }
  }
  return complaints;
}

}  // namespace

PipelineShape pipeline_shape(const config::Config& config, std::int64_t dp, int pp_rank) {
  return {.pp = static_cast<int>(config.model.pipeline_model_parallel_size),
          .pp_rank = pp_rank,
          .vpp = static_cast<int>(derive::virtual_stages(config.model)),
          .micro_batches = static_cast<int>(derive::micro_batches(config.train, dp)),
          .group = static_cast<int>(derive::micro_batch_group(config.model)),
          .extra_warm_up = config.comm_overlap.overlap_moe_expert_parallel_comm ? 1 : 0,
          .order = order_of(config)};
}

std::vector<RankPlan> plan_ranks(const config::Config& config,
                                 const grid::Grid& grid,
                                 const std::vector<int>& pp_ranks,
                                 config::RowBudget budget,
                                 const Detail& detail) {
  std::vector<RankPlan> plans = plan_training(config, grid, pp_ranks, budget, detail);
  for (RankPlan& plan : plans) plan.forward = build_forward(plan.anatomy, plan.shape);
  return plans;
}

std::vector<RankPlan> plan_training(const config::Config& config,
                                    const grid::Grid& grid,
                                    const std::vector<int>& pp_ranks,
                                    config::RowBudget budget,
                                    const Detail& detail) {
  ReductionScope sums{.dense = sums_over(grid.dp() * grid.cp()),
                      .expert = sums_over(grid.edp()),
                      .totals = sums_over(grid.world()),
                      .copied = sums_over(grid.tp()),
                      .wire = narrowed_wire(config)};
  const TokenFlow tokens{.slices = token_slices(config),
                         .budget = budget,
                         .machines = machines_of(config),
                         .replicas = grid.tp() * grid.dp() * grid.cp(),
                         .tp = grid.tp(),
                         .cp = grid.cp(),
                         .sequences = static_cast<int>(config.train.micro_batch_size),
                         .exchange = exchange_of(config, grid),
                         .weight_gradients = weight_gradients_of(config),
                         .logits = derive::logits_kept(config),
                         .leave_their_rank = config.model.tokens_travel()};
  const derive::Placement placement = derive::placement_of(config);
  const Detail with_all = with_savings(detail, config);
  std::vector<RankPlan> plans;
  for (const int pp_rank : pp_ranks) {
    sums.buffers = derive::buffer_scheme(config, pp_rank);
    RankPlan plan{.anatomy = describe(config.model, sums, pp_rank, tokens, placement),
                  .shape = pipeline_shape(config, grid.dp(), pp_rank),
                  .training = {},
                  .forward = {}};
    plan.training = training_graph(config, plan.anatomy, plan.shape);
    add_detail(plan, with_all);
    overlap_exchanges(config, plan);
    if (grid.cp() > 1) {
      const auto place = config.comm_overlap.cp_comm_overlap ? run_ring_ahead : run_ring_in_line;
      plan.training = place(plan.training, plan.anatomy, plan.shape.micro_batches);
    }
    if (!with_all.offloaded.empty()) {
      plan.anatomy = with_offloading(std::move(plan.anatomy), with_all.offloaded);
      plan.training =
          offload(plan.training, plan.anatomy, plan.shape.micro_batches, even_load(config));
    }
    if (const derive::OptimizerOffload state = derive::optimizer_offload(config); state.is_on()) {
      plan.anatomy = with_offloaded_optimizer(std::move(plan.anatomy), state);
      plan.training = place_offloaded(plan.training, plan.anatomy, plan.shape.micro_batches);
    }
    if (derive::saves_beside(config)) {
      plan.anatomy = with_snapshot(std::move(plan.anatomy));
      plan.training = place_snapshot(plan.training, plan.anatomy, plan.shape.micro_batches);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<RankPlan> plan_step(const config::Config& config,
                                const grid::Grid& grid,
                                config::RowBudget budget,
                                const Detail& detail) {
  std::vector<int> all(static_cast<std::size_t>(grid.pp()));
  std::iota(all.begin(), all.end(), 0);
  return plan_ranks(config, grid, all, budget, detail);
}

std::vector<std::string> verify_plan(const std::vector<RankPlan>& plans) {
  std::vector<std::string> complaints;
  for (const RankPlan& plan : plans) {
    for (const auto& [graph, kind] : {std::pair(&plan.training, StepKind::Training),
                                      std::pair(&plan.forward, StepKind::ForwardOnly)}) {
      const std::vector<Fault> faults =
          verify(*graph, plan.anatomy, plan.shape.micro_batches, kind);
      for (const std::string& complaint : complaints_of(faults, {graph})) {
        complaints.push_back(
            plans.size() == 1
                ? complaint
                : base::text("pipeline rank {}: {}", plan.anatomy.pp_rank, complaint));
      }
    }
  }
  return complaints.empty() ? complaints_of_all(plans, verify_union) : complaints;
}

void note_sends_over(std::vector<RankPlan>& plans, int pp_rank) {
  const MembersOf members = members_of(plans);
  std::vector<const Graph*> training, forward;
  for (const RankPlan& plan : plans) {
    training.push_back(&plan.training);
    forward.push_back(&plan.forward);
  }
  RankPlan& own = plans[static_cast<std::size_t>(pp_rank)];
  own.training_over = sends_over(training, members, pp_rank);
  own.forward_over = sends_over(forward, members, pp_rank);
}

std::vector<std::string> verify_plan_calls(const std::vector<RankPlan>& plans) {
  return complaints_of_all(plans, verify_calls);
}

std::vector<int> stages_of_entry(const derive::Pipeline& pipeline,
                                 int pp_rank,
                                 const Entry& entry) {
  if (!is_meeting(entry)) return {pp_rank};
  switch (members_of(entry.node)) {
    case Members::Neighbour:
      return ends_of(pipeline, entry.node);
    case Members::World: {
      std::vector<int> all(static_cast<std::size_t>(pipeline.pp));
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    case Members::Tables:
      return pipeline.pp == 1 ? std::vector{0} : std::vector{0, pipeline.pp - 1};
    case Members::Rank:
    case Members::Experts:
    case Members::Replicas:
    case Members::Sharers:
    case Members::Gradients:
    case Members::Context:
    case Members::Tensor:
      return {pp_rank};
  }
  UNREACHABLE("who takes part in {}", print(entry.node));
}

std::vector<int> ranks_of_entry(const grid::Grid& grid,
                                const derive::Pipeline& pipeline,
                                int rank,
                                const Entry& entry) {
  using grid::GroupKind;
  const Node& node = entry.node;
  if (!is_meeting(entry)) return {rank};
  switch (members_of(node)) {
    case Members::Rank:
      return {rank};
    case Members::Neighbour: {
      const std::vector<int> group = grid.group_of(GroupKind::Pp, rank);
      std::vector<int> ends = ends_of(pipeline, node);
      for (int& end : ends) end = group[static_cast<std::size_t>(end)];
      return ends;
    }
    case Members::World:
      return grid.group_of(GroupKind::World, rank);
    case Members::Tables:
      return grid.group_of(GroupKind::Embedding, rank);
    case Members::Replicas:
      return grid.group_of(GroupKind::TpDpCp, rank);
    case Members::Sharers:
      return grid.group_of(GroupKind::TpCp, rank);
    case Members::Context:
      return grid.group_of(GroupKind::Cp, rank);
    case Members::Gradients:
      return grid.group_of(node.part == Part::Dense ? GroupKind::DpCp : GroupKind::ExpertDp, rank);
    case Members::Experts:
      return grid.group_of(GroupKind::TpEp, rank);
    case Members::Tensor:
      return grid.group_of(GroupKind::Tp, rank);
  }
  UNREACHABLE("who takes part in {}", print(node));
}

}  // namespace weft::schedule
