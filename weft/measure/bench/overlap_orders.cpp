#include "weft/measure/bench/overlap_orders.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/text/plan_files.h"

namespace weft::measure {
namespace {

using config::Config;
using Orders = std::vector<OverlapOrder>;

OverlapOrder judged(const char* name, const Config& config, Nodes nodes = Nodes::OfPlain) {
  rules::Verdict verdict = rules::validate(config);
  return {.name = name,
          .config = std::move(verdict.judged).value(),
          .warnings = std::move(verdict.warnings),
          .nodes = nodes};
}

// Adds an order if the rules allow it.
void add_where_legal(Orders& orders, const char* name, const Config& config, Nodes nodes) {
  const rules::Verdict verdict = rules::judge(config);
  if (verdict.runs()) orders.push_back(judged(name, config, nodes));
}

bool is_ring(config::CpComm comm) {
  return comm == config::CpComm::P2p || comm == config::CpComm::AllToAllP2p;
}

Orders expert_orders(const Config& config) {
  Config plain = config;
  plain.comm_overlap.overlap_moe_expert_parallel_comm = false;
  plain.comm_overlap.delay_wgrad_compute = false;
  plain.model.ep_overlap_early_attn_memory_release = false;
  Config overlap = plain;
  overlap.comm_overlap.overlap_moe_expert_parallel_comm = true;
  Config delayed = overlap;
  delayed.comm_overlap.delay_wgrad_compute = true;
  return {judged("plain", plain),
          judged("overlap", overlap),
          judged("overlap + delayed wgrad", delayed)};
}

// Buckets are cut only for overlap: each order has its own.
Orders data_orders(const Config& config) {
  Config plain = config;
  plain.comm_overlap.overlap_grad_reduce = plain.ddp.overlap_grad_reduce = false;
  plain.comm_overlap.overlap_param_gather = plain.ddp.overlap_param_gather = false;
  plain.optimizer.overlap_param_gather = false;
  plain.comm_overlap.overlap_param_gather_with_optimizer_step = false;
  plain.optimizer.overlap_param_gather_with_optimizer_step = false;
  Config reduce = plain;
  reduce.comm_overlap.overlap_grad_reduce = reduce.ddp.overlap_grad_reduce = true;
  Orders orders{judged("plain", plain), judged("overlap_grad_reduce", reduce, Nodes::Own)};
  if (!config.ddp.use_distributed_optimizer) return orders;
  Config gather = reduce;
  gather.comm_overlap.overlap_param_gather = gather.ddp.overlap_param_gather = true;
  gather.optimizer.overlap_param_gather = true;
  gather.comm_overlap.overlap_param_gather_with_optimizer_step =
      config.comm_overlap.overlap_param_gather_with_optimizer_step;
  gather.optimizer.overlap_param_gather_with_optimizer_step =
      config.optimizer.overlap_param_gather_with_optimizer_step;
  orders.push_back(judged("+ overlap_param_gather", gather, Nodes::Own));
  return orders;
}

Orders tensor_orders(const Config& config) {
  Config plain = config;
  plain.comm_overlap.tp_comm_overlap = false;
  Orders orders{judged("plain", plain)};
  Config overlap = plain;
  overlap.comm_overlap.tp_comm_overlap = true;
  add_where_legal(orders, "tp_comm_overlap", overlap, Nodes::Own);
  return orders;
}

Orders pipeline_orders(const Config& config) {
  const config::PipelineSchedule schedule = derive::pipeline_schedule(config);
  if (schedule == config::PipelineSchedule::DualPipeV) {
    throw base::ConfigError(
        "runtime.pipeline_schedule = dualpipev always exchanges under compute, so that there is no "
        "plain order: leave it out");
  }
  Config plain = config;
  plain.runtime.pipeline_schedule = config::PipelineSchedule::Auto;
  plain.comm_overlap.overlap_p2p_comm = false;
  plain.comm_overlap.batch_p2p_comm = true;
  plain.model.overlap_p2p_comm_warmup_flush = false;
  Config overlap = plain;
  overlap.comm_overlap.overlap_p2p_comm = true;
  overlap.comm_overlap.batch_p2p_comm = false;
  overlap.model.overlap_p2p_comm_warmup_flush = config.model.overlap_p2p_comm_warmup_flush;
  Orders orders{judged("plain", plain), judged("overlap_p2p_comm", overlap)};
  Config zero_bubble = overlap;
  zero_bubble.runtime.pipeline_schedule = config::PipelineSchedule::ZeroBubble;
  // Its attention is split into parts.
  add_where_legal(orders, "overlap_p2p_comm + zb_h1", zero_bubble, Nodes::Own);
  return orders;
}

// Same ring: each transfer after the previous attention, or under it.
Orders context_orders(const Config& config) {
  if (std::ranges::none_of(config.model.cp_comm_type, is_ring)) {
    throw base::ConfigError(
        base::text("model.cp_comm_type = {}: only what a ring brings travels under attention, so "
                   "that --mode cp needs p2p or a2a+p2p",
                   config::word(config.model.cp_comm_type.front())));
  }
  Config plain = config;
  plain.comm_overlap.cp_comm_overlap = false;
  Config overlap = plain;
  overlap.comm_overlap.cp_comm_overlap = true;
  return {judged("plain", plain), judged("cp_comm_overlap", overlap)};
}

Orders orders_of(const Config& config, BenchedKind kind) {
  switch (kind) {
    case BenchedKind::Ep:
      return expert_orders(config);
    case BenchedKind::Dp:
      return data_orders(config);
    case BenchedKind::Tp:
      return tensor_orders(config);
    case BenchedKind::Pp:
      return pipeline_orders(config);
    case BenchedKind::Cp:
      return context_orders(config);
  }
  UNREACHABLE("kind {}", static_cast<int>(kind));
}

// ConfigError without peers of this kind; for experts the rules check that.
void require_peers(const Config& config, BenchedKind kind) {
  if (kind == BenchedKind::Ep) return;
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t ranks = kind == BenchedKind::Tp   ? layout.tp
                             : kind == BenchedKind::Pp ? layout.pp
                             : kind == BenchedKind::Cp
                                 ? layout.cp
                                 : layout.world / (layout.tp * layout.pp * layout.cp);
  if (ranks > 1) return;
  throw base::ConfigError(
      base::text("--mode {0} overlaps what {0} ranks exchange, and {0} = {1}: it needs 2 or more",
                 word(kind),
                 ranks));
}

}  // namespace

std::string_view word(BenchedKind kind) {
  switch (kind) {
    case BenchedKind::Ep:
      return "ep";
    case BenchedKind::Dp:
      return "dp";
    case BenchedKind::Tp:
      return "tp";
    case BenchedKind::Pp:
      return "pp";
    case BenchedKind::Cp:
      return "cp";
  }
  UNREACHABLE("kind {}", static_cast<int>(kind));
}

std::vector<OverlapOrder> overlap_orders(const Config& config,
                                         BenchedKind kind,
                                         const std::string& folder) {
  rules::validate(config);
  require_peers(config, kind);
  Orders orders = orders_of(config, kind);
  if (folder.empty()) return orders;
  Config written = orders.front().config;
  written.runtime.schedule = folder;
  std::vector<schedule::RankPlan> plans =
      schedule::plan_step(written, grid::Grid(derive::layout_of(written)));
  schedule::take_orders_from(folder, plans);  // throws if it is invalid
  orders.push_back(judged("as written", written));
  return orders;
}

}  // namespace weft::measure
