#include "weft/schedule/plan.h"

#include <numeric>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/machines.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/passes/interleave.h"
#include "weft/schedule/passes/parts.h"
#include "weft/schedule/passes/point_to_point.h"
#include "weft/schedule/passes/recompute.h"
#include "weft/schedule/passes/shared_experts.h"
#include "weft/schedule/passes/slices.h"
#include "weft/schedule/passes/weight_gradients.h"

namespace weft::schedule {
namespace {

Sums sums_over(int ranks) { return ranks > 1 ? Sums::OverRanks : Sums::None; }

PipelineShape shape_of(const config::Config& config, const grid::Grid& grid, int pp_rank) {
  return {.pp = grid.pp(),
          .pp_rank = pp_rank,
          .vpp = static_cast<int>(derive::virtual_stages(config.model)),
          .micro_batches = static_cast<int>(derive::micro_batches(config.train, grid.dp())),
          .group = static_cast<int>(derive::micro_batch_group(config.model)),
          .extra_warm_up = config.comm_overlap.overlap_moe_expert_parallel_comm ? 1 : 0};
}

// Where no tokens travel there is nothing to cut them for.
int token_slices(const config::Config& config) {
  const bool travel = config.model.expert_model_parallel_size > 1;
  return travel ? static_cast<int>(config.comm_overlap.moe_token_slices) : 1;
}

// Those that an expert-parallel group lies in. Only hybridep is described by it, whose groups are
// all in as many: the config has been validated (W64).
int machines_of(const config::Config& config, const grid::Grid& grid) {
  if (!config.runtime.ranks_per_node) return 1;
  const std::vector<int> group = grid.group_of(grid::GroupKind::Ep, 0);
  return static_cast<int>(derive::members_by_machine(group, *config.runtime.ranks_per_node).size());
}

Graph training_graph(const config::Config& config,
                     const Anatomy& anatomy,
                     const PipelineShape& shape) {
  const int micro_batches = shape.micro_batches;
  Graph graph = build_training(anatomy, shape);
  if (config.comm_overlap.overlap_moe_expert_parallel_comm) {
    graph = interleave_turns(graph,
                             anatomy,
                             shape,
                             config.model.ep_overlap_early_attn_memory_release
                                 ? AttentionRelease::Early
                                 : AttentionRelease::Late);
  } else if (anatomy.flow.slices > 1) {
    graph = stagger_slices(graph, anatomy, micro_batches);
  }
  if (config.model.moe_shared_expert_overlap) {
    graph = overlap_shared_experts(graph, anatomy, micro_batches);
  }
  if (config.comm_overlap.delay_wgrad_compute) {
    graph = delay_weight_gradients(graph, anatomy, micro_batches);
  }
  if (config.model.overlap_dispatch_backward_with_experts_wgrad) {
    graph = delay_expert_gradients(graph, anatomy, micro_batches);
  }
  if (anatomy.pp == 1) return graph;
  return derive::overlaps_p2p(config) ? prefetch_receives(graph, anatomy, micro_batches)
                                      : batch_exchanges(graph, anatomy, shape);
}

void add_detail(RankPlan& plan, const Detail& detail) {
  const int micro_batches = plan.shape.micro_batches;
  if (!detail.split.empty()) {
    plan.anatomy = with_parts(std::move(plan.anatomy), detail.split);
    plan.training = split_parts(plan.training, plan.anatomy, micro_batches);
  }
  std::vector<PieceName> recomputed = always_recomputed(plan.anatomy);
  recomputed.insert(recomputed.end(), detail.recomputed.begin(), detail.recomputed.end());
  if (recomputed.empty()) return;
  plan.anatomy = with_recomputation(std::move(plan.anatomy), recomputed);
  plan.training = recompute(plan.training, plan.anatomy, micro_batches);
}

bool is_sender(const Node& node) { return meeting_of(node) == node; }

// From the sender to the receiver, around the ring.
int peer_of(int pp, int pp_rank, const Node& node) {
  const bool forward = node.direction == Direction::F;
  return (pp_rank + (is_sender(node) == forward ? 1 : pp - 1)) % pp;
}

}  // namespace

std::vector<RankPlan> plan_step(const config::Config& config,
                                const grid::Grid& grid,
                                config::RowBudget budget,
                                const Detail& detail) {
  const ReductionScope sums{.dense = sums_over(grid.dp() * grid.cp()),
                            .expert = sums_over(grid.edp()),
                            .totals = sums_over(grid.world()),
                            .copied = sums_over(grid.tp())};
  const TokenFlow tokens{.slices = token_slices(config),
                         .budget = budget,
                         .machines = machines_of(config, grid),
                         .replicas = grid.dp() * grid.cp()};
  std::vector<RankPlan> plans;
  for (int pp_rank = 0; pp_rank < grid.pp(); ++pp_rank) {
    RankPlan plan{.anatomy = describe(config.model, sums, pp_rank, tokens),
                  .shape = shape_of(config, grid, pp_rank),
                  .training = {},
                  .forward = {}};
    plan.training = training_graph(config, plan.anatomy, plan.shape);
    add_detail(plan, detail);
    plan.forward = build_forward(plan.anatomy, plan.shape);
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<std::string> verify_plan(const std::vector<RankPlan>& plans) {
  std::vector<std::string> complaints;
  const int pp = static_cast<int>(plans.size());
  std::vector<const Graph*> training, forward;
  for (const RankPlan& plan : plans) {
    for (const StepKind kind : {StepKind::Training, StepKind::ForwardOnly}) {
      const Graph& graph = kind == StepKind::Training ? plan.training : plan.forward;
      for (const std::string& complaint :
           verify(graph, plan.anatomy, plan.shape.micro_batches, kind)) {
        complaints.push_back(
            pp == 1 ? complaint
                    : base::text("pipeline rank {}: {}", plan.anatomy.pp_rank, complaint));
      }
    }
    training.push_back(&plan.training);
    forward.push_back(&plan.forward);
  }
  if (!complaints.empty()) return complaints;
  const MembersOf members = [pp](int rank, const Entry& entry) {
    return stages_of_entry(pp, rank, entry);
  };
  complaints = verify_union(training, members);
  for (std::string& complaint : verify_union(forward, members)) {
    complaints.push_back(std::move(complaint));
  }
  return complaints;
}

void note_sends_over(std::vector<RankPlan>& plans, int pp_rank) {
  const int pp = static_cast<int>(plans.size());
  const MembersOf members = [pp](int rank, const Entry& entry) {
    return stages_of_entry(pp, rank, entry);
  };
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
  const int pp = static_cast<int>(plans.size());
  const MembersOf members = [pp](int rank, const Entry& entry) {
    return stages_of_entry(pp, rank, entry);
  };
  std::vector<std::string> complaints;
  for (const auto graph : {&RankPlan::training, &RankPlan::forward}) {
    std::vector<const Graph*> graphs;
    for (const RankPlan& plan : plans) graphs.push_back(&(plan.*graph));
    for (std::string& complaint : verify_calls(graphs, members)) {
      complaints.push_back(std::move(complaint));
    }
  }
  return complaints;
}

std::vector<int> stages_of_entry(int pp, int pp_rank, const Entry& entry) {
  if (!is_meeting(entry)) return {pp_rank};
  switch (members_of(entry.node)) {
    case Members::Neighbour: {
      const int peer = peer_of(pp, pp_rank, entry.node);
      return is_sender(entry.node) ? std::vector{pp_rank, peer} : std::vector{peer, pp_rank};
    }
    case Members::World: {
      std::vector<int> all(static_cast<std::size_t>(pp));
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    case Members::Tables:
      return pp == 1 ? std::vector{0} : std::vector{0, pp - 1};
    case Members::Rank:
    case Members::Experts:
    case Members::Replicas:
    case Members::Gradients:
    case Members::Tensor:
      return {pp_rank};
  }
  UNREACHABLE("who takes part in {}", print(entry.node));
}

std::vector<int> ranks_of_entry(const grid::Grid& grid, int rank, const Entry& entry) {
  using grid::GroupKind;
  const Node& node = entry.node;
  if (!is_meeting(entry)) return {rank};
  switch (members_of(node)) {
    case Members::Rank:
      return {rank};
    case Members::Neighbour: {
      const std::vector<int> pipeline = grid.group_of(GroupKind::Pp, rank);
      const int own = grid.coordinate(rank).pp;
      const int peer = pipeline[static_cast<std::size_t>(peer_of(grid.pp(), own, node))];
      return is_sender(node) ? std::vector{rank, peer} : std::vector{peer, rank};
    }
    case Members::World:
      return grid.group_of(GroupKind::World, rank);
    case Members::Tables:
      return grid.group_of(GroupKind::Embedding, rank);
    case Members::Replicas:
      return grid.group_of(GroupKind::DpCp, rank);
    case Members::Gradients:
      return grid.group_of(node.part == Part::Dense ? GroupKind::DpCp : GroupKind::ExpertDp, rank);
    case Members::Experts:
      return grid.group_of(GroupKind::Ep, rank);
    case Members::Tensor:
      return grid.group_of(GroupKind::Tp, rank);
  }
  UNREACHABLE("who takes part in {}", print(node));
}

}  // namespace weft::schedule
