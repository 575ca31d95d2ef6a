#include "weft/plan/hardware/wire_time.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/derive/dispatch.h"

namespace weft::plan {
namespace {

using base::number;
using config::ModelConfig;

double choose(double n, double k) {
  double ways = 1;
  for (double i = 0; i < k; ++i) ways *= std::max(0.0, n - i) / (i + 1);
  return ways;
}

// Domains that one token's experts lie in. If a token first picks groups of experts, it visits at
// most the domains of these groups.
double domains_of_token(const ModelConfig& model, double ranks, double domains) {
  const double any = derive::copies_of_token(model,
                                             static_cast<std::int64_t>(ranks),
                                             static_cast<std::int64_t>(domains));
  if (!model.moe_router_num_groups || !model.moe_router_group_topk) return any;
  const double groups = number(*model.moe_router_num_groups);
  const double picked = number(*model.moe_router_group_topk);
  if (groups < domains || picked >= groups) return any;
  const double missed = choose(groups - groups / domains, picked) / choose(groups, picked);
  return std::min(any, domains * (1 - missed));
}

}  // namespace

RankGroup group_of(double ranks, double stride, const Hardware& hardware) {
  const double near = std::clamp(std::floor(hardware.nvlink_domain / stride), 1.0, ranks);
  const double domains = std::ceil(ranks / near);
  return {.ranks = ranks, .in_domain = ranks / domains};
}

DispatchRows dispatch_rows(const ModelConfig& model, const RankGroup& group) {
  const double ranks = group.ranks, inside = group.in_domain;
  if (ranks <= 1) return {};
  const double chosen = number(model.expert_grid().per_token);
  if (model.moe_token_dispatcher_type == config::Dispatcher::AllGather) {
    return {.inside = inside - 1, .between = ranks - inside};
  }
  if (model.moe_token_dispatcher_type != config::Dispatcher::Flex) {
    return {.inside = chosen * (inside - 1) / ranks, .between = chosen * (ranks - inside) / ranks};
  }
  const auto whole = static_cast<std::int64_t>(ranks);
  const double rank = derive::copies_of_token(model, whole, whole) / ranks;
  const double domains = group.domains();
  const double visited = domains_of_token(model, ranks, domains) / domains;
  // A rank forwards inside its domain the rows that its counterparts in other domains sent.
  return {.inside = domains * (inside - 1) * rank, .between = (domains - 1) * visited};
}

double dispatch_seconds(const ModelConfig& model, const Workload& work, const Hardware& hardware) {
  const RankGroup group = group_of(work.ep * work.etp, 1, hardware);
  if (model.experts() == 0 || group.ranks <= 1) return 0;
  const DispatchRows rows = dispatch_rows(model, group);
  const double row = work.own_tokens * work.imbalance * work.element *
                     number(model.moe_latent_size.value_or(model.hidden_size));
  const double nvlink = hardware.nvlink_gbps * 1e9;
  const double network = rows.between * row / (hardware.nic_gbps * 1e9 * hardware.nic_share);
  double latency = hardware.nvlink_latency_us * kMicroseconds;
  if (rows.between > 0) latency += hardware.nic_latency_us * kMicroseconds;
  // One kernel uses both kinds of links at once; a plain all-to-all uses one at a time.
  if (work.is_flex) {
    return std::max(rows.inside * row / (nvlink * hardware.nvlink_share), network) + latency;
  }
  return rows.inside * row / (nvlink * hardware.exchange_share) + network + latency;
}

double gather_seconds(double bytes, const RankGroup& group, const Hardware& hardware) {
  if (group.ranks <= 1 || bytes <= 0) return 0;
  const double near = group.in_domain, domains = group.domains();
  double seconds = 0;
  if (near > 1) {
    seconds += bytes * (near - 1) / near / (hardware.nvlink_gbps * 1e9 * hardware.exchange_share) +
               hardware.nvlink_latency_us * kMicroseconds;
  }
  // Each rank of a domain sends its part through its own network port.
  if (domains > 1) {
    seconds +=
        bytes / near * (domains - 1) / domains / (hardware.nic_gbps * 1e9 * hardware.nic_share) +
        hardware.nic_latency_us * kMicroseconds;
  }
  return seconds;
}

double send_seconds(double bytes, double ranks_of_stage, const Hardware& hardware) {
  if (2 * ranks_of_stage <= hardware.nvlink_domain) {
    return bytes / (hardware.nvlink_gbps * 1e9 * hardware.exchange_share) +
           hardware.nvlink_latency_us * kMicroseconds;
  }
  return bytes / (hardware.nic_gbps * 1e9 * hardware.nic_share) +
         hardware.nic_latency_us * kMicroseconds;
}

}  // namespace weft::plan
