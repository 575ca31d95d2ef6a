#include "tests/schedule/plans_support.h"

#include "tests/schedule/models_support.h"
#include "tests/soak.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"

namespace weft::schedule {

std::string name(const PlanCase& c) {
  return base::text(
      "{}{} ep{} dp{} tp{}{} cp{}{}{} pp{} vpp{} m{} group{} slices{}{}{}{}{}{}{}{}{}{}{} "
      "{}{}{}{}{}{}",
      c.layers,
      c.layout,
      c.ep,
      c.dp,
      c.tp,
      c.tp_overlap ? "_overlap" : "",
      c.cp,
      c.cp > 1 ? config::word(c.cp_comm) : "",
      c.cp_overlap ? "" : "_plain",
      c.pp,
      c.vpp,
      c.micro_batches,
      c.group,
      c.slices,
      c.shared ? " shared" : "",
      c.shared_overlap ? " shared_overlap" : "",
      c.narrow ? " narrow" : "",
      c.global_loss ? " global_loss" : "",
      c.tied ? " tied" : "",
      c.overlap ? " overlap" : "",
      c.delay ? " delay" : "",
      c.early ? " early" : "",
      c.experts_wgrad ? " experts_wgrad" : "",
      c.overlap_p2p ? " overlap_p2p" : "",
      config::word(c.schedule),
      c.defer_head ? base::text(" defer_head{}", c.defer_limit) : "",
      c.flush ? " flush" : "",
      c.distributed ? " distributed" : "",
      c.overlap_reduce ? " overlap_reduce" : "",
      c.overlap_gather ? " overlap_gather" : "");
}

config::Config config_of(const PlanCase& c) {
  config::Config config;
  config.model = c.tied ? tied_model_of(c.layers, c.ep) : model_of(c.layers, c.ep);
  config.model.tensor_model_parallel_size = c.tp;
  config.model.sequence_parallel = c.tp > 1;
  config.comm_overlap.tp_comm_overlap = c.tp_overlap;
  config.model.context_parallel_size = c.cp;
  config.model.cp_comm_type = {c.cp_comm};
  if (c.cp_comm == config::CpComm::AllToAllP2p) {
    config.model.hierarchical_context_parallel_sizes = {2, c.cp / 2};
  }
  config.comm_overlap.cp_comm_overlap = c.cp_overlap;
  config.model.expert_tensor_parallel_size = 1;
  config.model.pipeline_model_parallel_size = c.pp;
  config.model.virtual_pipeline_model_parallel_size = c.vpp;
  config.model.pipeline_model_parallel_layout = c.layout;
  if (c.group > 0) config.model.microbatch_group_size_per_vp_stage = c.group;
  config.model.ep_overlap_early_attn_memory_release = c.early;
  config.model.overlap_dispatch_backward_with_experts_wgrad = c.experts_wgrad;
  config.comm_overlap.overlap_moe_expert_parallel_comm = c.overlap;
  config.comm_overlap.delay_wgrad_compute = c.delay;
  if (c.shared) config.model.moe_shared_expert_intermediate_size = c.narrow ? 8 : 64;
  config.model.moe_shared_expert_overlap = c.shared_overlap;
  if (c.narrow) config.model.moe_ffn_hidden_size = 8;
  if (c.global_loss) {
    config.model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss};
    config.model.moe_aux_loss_coeff = {0.01};
  }
  config.comm_overlap.moe_token_slices = c.slices;
  config.comm_overlap.overlap_p2p_comm = c.overlap_p2p;
  config.comm_overlap.batch_p2p_comm = !c.overlap_p2p;
  config.runtime.pipeline_schedule = c.schedule;
  config.comm_overlap.defer_embedding_wgrad_compute = c.defer_head;
  config.comm_overlap.wgrad_deferral_limit = c.defer_limit;
  config.model.overlap_p2p_comm_warmup_flush = c.flush;
  config.ddp.use_distributed_optimizer = c.distributed;
  config.optimizer.use_distributed_optimizer = c.distributed;
  config.ddp.overlap_grad_reduce = c.overlap_reduce;
  config.ddp.overlap_param_gather = config.optimizer.overlap_param_gather = c.overlap_gather;
  config.optimizer.overlap_param_gather_with_optimizer_step = c.gather_under_optimizer;
  config.ddp.align_param_gather = c.align_gather;
  if (c.bucket_size > 0) config.ddp.bucket_size = c.bucket_size;
  config.train.global_batch_size = std::int64_t{c.micro_batches} * c.dp;
  config.runtime.world_size = std::int64_t{c.dp} * c.tp * c.cp * c.pp;
  return config;
}

std::vector<RankPlan> plans_of(const PlanCase& c) {
  const config::Config config = config_of(c);
  return plan_step(config,
                   grid::Grid(derive::layout_of(config)),
                   config::RowBudget::AsConfigured,
                   c.detail);
}

std::vector<PlanCase> many_cases() {
  std::vector<PlanCase> shapes{
      {.layers = "m", .micro_batches = 1},
      {.layers = "dm", .micro_batches = 2, .tied = true},
      {.layers = "mdmm", .micro_batches = 5},
      {.layers = "mm", .pp = 2, .micro_batches = 1},
      {.layers = "md", .tp = 2, .micro_batches = 3, .tied = true},
      {.layers = "mmdm", .dp = 1, .tp = 2, .pp = 2, .vpp = 2, .micro_batches = 4},
      {.layers = "md", .tp = 2, .tp_overlap = true, .micro_batches = 3, .shared = true},
      {.layers = "dm", .dp = 1, .tp = 4, .tp_overlap = true, .cp = 2, .micro_batches = 2},
      {.layers = "mmdm",
       .tp = 2,
       .tp_overlap = true,
       .pp = 2,
       .vpp = 2,
       .micro_batches = 4,
       .shared = true},
      {.layers = "md", .dp = 1, .cp = 4, .micro_batches = 3},
      {.layers = "mdm", .dp = 1, .cp = 4, .cp_comm = config::CpComm::AllToAllP2p, .pp = 3},
      {.layers = "md", .cp = 2, .cp_comm = config::CpComm::AllGather, .micro_batches = 2},
      {.layers = "mdmm", .pp = 2, .micro_batches = 4, .tied = true},
      {.layers = "mmmm", .ep = 4, .dp = 4, .pp = 4, .micro_batches = 8},
      {.layers = "mmmm", .pp = 4, .micro_batches = 2},
      {.layers = "mmmm", .pp = 2, .vpp = 2, .micro_batches = 2},
      {.layers = "dmmm", .pp = 2, .vpp = 2, .micro_batches = 4, .tied = true},
      {.layers = "mmmmmmmm", .pp = 2, .vpp = 2, .micro_batches = 8, .group = 4},
      {.layers = "mmmmmmmm", .pp = 4, .vpp = 2, .micro_batches = 8},
      {.layers = "mmmmmmmm", .pp = 4, .vpp = 2, .micro_batches = 4, .tied = true},
      {.layers = "mmmmmmmm", .pp = 2, .vpp = 4, .micro_batches = 7, .group = 4},
      {.layers = "mmmmm", .pp = 3, .micro_batches = 5, .layout = "Et|tttt|L"},
      {.layers = "dmmmm", .pp = 2, .vpp = 2, .micro_batches = 4, .layout = "E|ttt||ttL"},
      {.layers = "mmmmm", .pp = 2, .vpp = 2, .micro_batches = 6, .layout = "Ett|t|t|tL"},
  };
  std::vector<PlanCase> all;
  for (const PlanCase& shape : shapes) {
    for (int knobs = 0; knobs < 32; ++knobs) {
      PlanCase c = shape;
      c.overlap = (knobs & 1) != 0;
      c.delay = (knobs & 2) != 0;
      c.early = (knobs & 4) != 0;
      c.experts_wgrad = (knobs & 8) != 0;
      c.overlap_p2p = (knobs & 16) != 0;
      const bool interleaved_only = c.delay || c.early;
      if ((interleaved_only && !c.overlap) || (c.experts_wgrad && c.overlap)) continue;
      if (c.overlap_p2p && c.pp == 1) continue;
      all.push_back(c);
      // Beside each case, a variant with slices, with shared experts, or with both, in turn. With
      // both, a loss counts the rows of all ranks.
      const std::size_t turn = all.size() / 2 % 3;
      c.slices = turn == 0 ? 2 : turn == 1 ? 1 : 3;
      c.shared = turn != 0;
      c.shared_overlap = c.shared && !c.overlap;
      c.global_loss = turn == 2;
      c.narrow = c.overlap && all.size() / 2 % 2 == 1;
      // Variants between data-parallel ranks.
      const std::size_t exchange = all.size() / 2 % 5;
      c.overlap_reduce = exchange == 1 || exchange >= 3;
      c.distributed = exchange >= 2;
      c.overlap_gather = exchange >= 3;
      c.align_gather = exchange == 4;
      c.gather_under_optimizer = exchange == 3 && c.vpp > 1 && turn == 1;
      if (c.overlap_reduce) c.bucket_size = 1000;
      all.push_back(c);
    }
  }
  std::ranges::copy(ordered_cases(), std::back_inserter(all));
  return all;
}

std::vector<PlanCase> some_cases(std::size_t distance, std::size_t first) {
  const std::vector<PlanCase> all = many_cases();
  if (soaks()) return all;
  std::vector<PlanCase> some;
  for (std::size_t i = first; i < all.size(); i += distance) some.push_back(all[i]);
  return some;
}

const std::vector<PlannedCase>& many_plans() {
  static const std::vector<PlannedCase> all = [] {
    std::vector<PlannedCase> planned;
    for (const PlanCase& c : many_cases()) planned.push_back({c, plans_of(c)});
    return planned;
  }();
  return all;
}

std::vector<PlanCase> ordered_cases() {
  using enum config::PipelineSchedule;
  std::vector<PlanCase> all{{.layers = "mmdm",
                             .tp = 4,
                             .tp_overlap = true,
                             .pp = 2,
                             .micro_batches = 4,
                             .overlap_p2p = true,
                             .shared = true,
                             .schedule = ZeroBubble},
                            {.layers = "mmdmmmmm",
                             .tp = 2,
                             .pp = 4,
                             .vpp = 2,
                             .micro_batches = 4,
                             .overlap = true,
                             .overlap_p2p = true,
                             .schedule = DualPipeV}};
  for (const int pp : {2, 4}) {
    const std::string layers = pp == 2 ? "dmmm" : "mmmmdmmm";
    for (const int micro_batches : {1, pp - 1, pp + 1, 2 * pp, 3 * pp + 1}) {
      for (const config::PipelineSchedule schedule : {ZeroBubble, DualPipeV}) {
        PlanCase c{.layers = layers,
                   .pp = pp,
                   .vpp = schedule == DualPipeV ? 2 : 1,
                   .micro_batches = micro_batches,
                   .tied = micro_batches % 2 == 0,
                   .overlap_p2p = true,
                   .slices = 1 + micro_batches % 2,
                   .shared = micro_batches > pp,
                   .schedule = schedule,
                   .flush = micro_batches == pp + 1};
        all.push_back(c);
        c.experts_wgrad = true;
        c.shared_overlap = c.shared;
        all.push_back(c);
        if (schedule != DualPipeV) continue;
        c.experts_wgrad = c.shared_overlap = false;
        c.overlap = true;
        all.push_back(c);
        c.delay = c.early = true;
        all.push_back(c);
      }
      PlanCase c{.layers = layers,
                 .pp = pp,
                 .micro_batches = micro_batches,
                 .tied = true,
                 .overlap_p2p = micro_batches % 2 == 0,
                 .defer_head = true,
                 .defer_limit = micro_batches / 2,
                 .flush = micro_batches % 2 == 0};
      all.push_back(c);
      c.schedule = ZeroBubble;
      c.overlap_p2p = true;
      all.push_back(c);
    }
  }
  return all;
}

}  // namespace weft::schedule
