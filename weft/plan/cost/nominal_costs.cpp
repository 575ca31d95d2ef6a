#include "weft/plan/cost/nominal_costs.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/dispatch.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/derive/gpu.h"
#include "weft/derive/machines.h"
#include "weft/plan/cost/nominal_work.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/schedule/meeting.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using schedule::Entry;
using schedule::Members;
using schedule::Node;
using schedule::Place;

using base::number;

// Ranks of an NVLink domain: whole machines that divide the world evenly. A domain of 72 gives a
// run of 128 ranks 64 each, as in plan/hardware/wire_time.h.
int ranks_in_domain(const config::Config& config, const NominalRates& rates) {
  const auto machine = static_cast<int>(*config.runtime.ranks_per_node);
  const auto world = static_cast<int>(derive::layout_of(config).world);
  int ranks = std::min(rates.most_in_domain, world) / machine * machine;
  while (ranks > machine && world % ranks != 0) ranks -= machine;
  return std::max(ranks, machine);
}

grid::Fabric links_of(const config::Config& config, const NominalRates& rates) {
  grid::Fabric fabric = derive::fabric_of(config);
  if (!fabric.is_free()) return fabric;
  fabric.intra = {.bytes_per_second = rates.link_bytes_per_second,
                  .latency_seconds = rates.link_latency_seconds};
  fabric.inter = {.bytes_per_second = rates.network_bytes_per_second,
                  .latency_seconds = rates.link_latency_seconds};
  if (fabric.ranks_per_node > 0) fabric.ranks_per_node = ranks_in_domain(config, rates);
  return fabric;
}

// First rank of a pipeline stage, which stands for the others.
int first_rank_of(const grid::Grid& grid, int pp_rank) {
  int rank = 0;
  while (grid.coordinate(rank).pp != pp_rank) ++rank;
  return rank;
}

double seconds_on(const grid::Link& link, double bytes) {
  const double wire = link.bytes_per_second == 0 ? 0 : bytes / link.bytes_per_second;
  return wire + link.latency_seconds;
}

// Rank of a pipeline stage whose tokens cross machines most; the others of a dispatch wait for it.
int most_remote_rank_of(const grid::Fabric& links, const grid::Grid& grid, int pp_rank) {
  std::vector<std::vector<int>> groups = grid.groups(grid::GroupKind::TpEp);
  std::erase_if(groups, [&](const std::vector<int>& group) {
    return grid.coordinate(group.front()).pp != pp_rank;
  });
  const int together = links.ranks_per_node > 0 ? links.ranks_per_node : grid.world();
  return derive::most_remote(groups, together).rank;
}

// Rows that leave a rank under even routing.
struct LeavingRows {
  double across = 0, within = 0;  // one hop: `across` alone, on any links
  bool are_two = false;
};

LeavingRows leaving_rows(const config::Config& config, const schedule::TokenFlow& flow) {
  const config::ModelConfig& model = config.model;
  const std::int64_t ranks = model.expert_grid().ranks;
  if (model.experts() == 0 || ranks == 1) return {};
  const derive::DispatchShape shape{.ranks = ranks,
                                    .ranks_per_node = ranks / flow.machines,
                                    .tokens = expected_load(config, flow).tokens};
  const derive::DispatchTraffic sent = derive::expected_traffic(model, shape);
  if (!derive::passes_on(model, shape)) {
    return {.across = sent.inside.rows + sent.between.rows};
  }
  return {.across = sent.between.rows, .within = sent.inside.rows, .are_two = true};
}

// Costs of one pipeline rank.
class Pricing {
 public:
  Pricing(const config::Config& config,
          const grid::Grid& grid,
          const schedule::RankPlan& plan,
          const NominalRates& rates)
      : config_(config),
        grid_(grid),
        rates_(rates),
        links_(links_of(config, rates)),
        anatomy_(plan.anatomy),
        work_(config, plan.anatomy),
        load_(expected_load(config, plan.anatomy.flow)),
        hops_(leaving_rows(config, plan.anatomy.flow)),
        rank_(first_rank_of(grid, plan.anatomy.pp_rank)),
        dispatching_(most_remote_rank_of(links_, grid, plan.anatomy.pp_rank)) {}

  sim::Cost cost(const Entry& entry) const {
    if (schedule::is_meeting(entry)) {
      return {.seconds = wire_seconds(entry), .kind = trace::SpanKind::Communication};
    }
    if (entry.node.piece == schedule::Piece::Update) {
      const double bytes = work_.host_bytes(schedule::offloaded_of(anatomy_, entry.node));
      return {.seconds = bytes / (rates_.host_memory_bytes_per_second * rates_.host_memory_lead),
              .kind = trace::SpanKind::Host};
    }
    if (entry.lane == schedule::Lane::Host) return {.seconds = 0, .kind = trace::SpanKind::Host};
    if (schedule::is_copy(entry.lane)) {
      const bool is_state = entry.node.piece == schedule::Piece::Download ||
                            entry.node.piece == schedule::Piece::Upload;
      const double bytes =
          is_state ? work_.link_bytes(schedule::offloaded_of(anatomy_, entry.node), entry.node)
                   : copied(entry.node);
      return {.seconds = bytes / (rates_.host_link_bytes_per_second * rates_.host_link_lead),
              .kind = trace::SpanKind::Copy};
    }
    const Work work = work_.of(entry.node);
    return {.seconds = work.flops / rates_.flops_per_second +
                       work.memory_bytes / rates_.memory_bytes_per_second,
            .kind = work.flops > 0 ? trace::SpanKind::Gemm : trace::SpanKind::Memory};
  }

 private:
  double wire_seconds(const Entry& entry) const {
    const Place place = schedule::row_of(entry.node.piece).place;
    const bool travels = place == Place::Dispatch || place == Place::Combine;
    const int rank = entry.lane == schedule::Lane::Ep ? dispatching_ : rank_;
    const std::vector<int> members =
        schedule::ranks_of_entry(grid_, anatomy_.pipeline, rank, entry);
    if (travels && hops_.are_two) {
      const Peers all = peers_of(members, rank);
      const double bytes = sent(entry.node) / (hops_.across + hops_.within);
      const grid::Link& between = all.near < all.count ? links_.inter : links_.intra;
      return (hops_.across > 0 ? seconds_on(between, bytes * hops_.across) : 0) +
             (hops_.within > 0 ? seconds_on(links_.intra, bytes * hops_.within) : 0);
    }
    if (schedule::members_of(entry.node) == Members::Gradients) {
      const schedule::BucketAnatomy& bucket = schedule::bucket_of(anatomy_, entry.node);
      const auto shards = static_cast<std::size_t>(bucket.shards);
      if (shards > 1 && shards < members.size()) return instance_seconds(entry.node, members);
    }
    return exchange_seconds(members, rank, bytes_sent(entry.node, number(std::ssize(members))));
  }

  // Other members of a group, and those on this rank's machine.
  struct Peers {
    double count = 0, near = 0;
  };
  Peers peers_of(const std::vector<int>& members, int rank) const {
    const auto near =
        std::ranges::count_if(members, [&](int r) { return links_.same_machine(r, rank); });
    return {.count = number(std::ssize(members)) - 1, .near = number(near) - 1};
  }

  // Time to send equal parts to all others, through both ports at once.
  double exchange_seconds(const std::vector<int>& members, int rank, double bytes) const {
    if (members.size() < 2) return 0;
    const auto [peers, near] = peers_of(members, rank);
    double seconds = 0;
    if (near > 0) seconds = seconds_on(links_.intra, bytes * near / peers);
    if (near < peers) {
      seconds = std::max(seconds, seconds_on(links_.inter, bytes * (peers - near) / peers));
    }
    return seconds;
  }

  // Time of a bucket's exchange inside the first optimizer instance, whose first rank this is. For
  // a sum it adds the shard's exchange between the instances.
  double instance_seconds(const Node& node, const std::vector<int>& members) const {
    const schedule::BucketAnatomy& bucket = schedule::bucket_of(anatomy_, node);
    const std::vector<int> within(members.begin(), members.begin() + bucket.shards);
    const double inside = exchange_seconds(within, rank_, bytes_sent(node, number(bucket.shards)));
    if (node == bucket.gather()) return inside;
    std::vector<int> across;
    for (auto i = std::int64_t{0}; i < std::ssize(members); i += bucket.shards) {
      across.push_back(members[static_cast<std::size_t>(i)]);
    }
    const double copies = number(std::ssize(across));
    const double shard = number(bucket.elements / bucket.shards) * gradient_width();
    return inside + exchange_seconds(across, rank_, shard * 2 * (copies - 1) / copies);
  }

  // Bytes of a gradient on the wire.
  double gradient_width() const {
    const bool is_wide = derive::gradient_wire(config_) == base::DType::F32;
    return is_wide ? kGradientBytes : kGradientBytes / 2;
  }

  // Bytes sent by one of `members` members.
  double bytes_sent(const Node& node, double members) const {
    const double to_others = (members - 1) / members;
    const double summed = work_.gradient_bytes() * 2 * to_others;
    switch (schedule::members_of(node)) {
      case Members::Gradients: {
        const schedule::BucketAnatomy& bucket = schedule::bucket_of(anatomy_, node);
        const double elements = number(bucket.elements);
        if (node == bucket.gather()) return elements * work_.element_bytes() * to_others;
        return elements * gradient_width() * (bucket.shards == 1 ? 2 : 1) * to_others;
      }
      case Members::Tables:
        return summed * number(config_.model.vocab_size * config_.model.hidden_size);
      case Members::Rank:
      case Members::World:  // a few numbers
        return 0;
      case Members::Neighbour:
      case Members::Experts:
      case Members::Replicas:
      case Members::Sharers:
      case Members::Context:
        return sent(node);
      case Members::Tensor:  // end of a step: gradients of norms and routers
        return node.piece == schedule::Piece::Reduce ? 0 : sent(node);
    }
    UNREACHABLE("what {} sends", schedule::print(node));
  }

  // Bytes copied to or from host memory. A snapshot counts nothing: the priced step does not save.
  double copied(const Node& node) const {
    const bool is_offloaded =
        node.direction == schedule::Direction::O || node.direction == schedule::Direction::I;
    if (!is_offloaded) return 0;
    const schedule::Load load = schedule::share_of(anatomy_, node, load_);
    return number(schedule::piece_of(anatomy_, node).offloaded_bytes().of(load));
  }

  // Bytes sent, equal to the received ones.
  double sent(const Node& node) const {
    schedule::Load leaving = load_;
    leaving.rows = static_cast<std::int64_t>(hops_.across + hops_.within);
    const schedule::PieceAnatomy& piece =
        schedule::is_exchange(node) ? anatomy_.send : schedule::piece_of(anatomy_, node);
    return piece.sends_of_node(node.direction) *
           number(piece.sent(node.direction).of(schedule::share_of(anatomy_, node, leaving)));
  }

  const config::Config& config_;
  const grid::Grid& grid_;
  const NominalRates& rates_;
  const grid::Fabric links_;
  const schedule::Anatomy& anatomy_;
  const NominalWork work_;
  const schedule::Load load_;
  const LeavingRows hops_;
  const int rank_, dispatching_;
};

}  // namespace

NominalRates rates_of(const config::HardwareConfig& hardware) {
  const derive::GpuFacts gpu = derive::gpu_facts(hardware);
  NominalRates rates;
  if (gpu.tflops) rates.flops_per_second = *gpu.tflops * 1e12;
  if (gpu.nvlink_gbps) rates.link_bytes_per_second = *gpu.nvlink_gbps * 1e9;
  if (gpu.memory_gbps) rates.memory_bytes_per_second = *gpu.memory_gbps * 1e9;
  if (gpu.nvlink_domain > gpu.gpus_per_node) rates.most_in_domain = gpu.nvlink_domain;
  // Compute is priced at its advertised rate; copies and host memory come nearer to theirs.
  if (gpu.host_gbps) {
    rates.host_link_bytes_per_second = *gpu.host_gbps * 1e9;
    rates.host_link_lead = derive::kReachedOfHostLink / derive::kReachedOfProducts;
  }
  if (gpu.host_memory_gbps) {
    rates.host_memory_bytes_per_second = *gpu.host_memory_gbps * 1e9;
    rates.host_memory_lead = derive::kReachedOfHostMemory / derive::kReachedOfProducts;
  }
  return rates;
}

std::string describe(const NominalRates& rates) {
  return base::text(
      "{:g} TFLOP/s, memory {:g} GB/s, links {:g} GB/s, between machines {:g} GB/s, "
      "to the host {:g} GB/s, in its memory {:g} GB/s",
      rates.flops_per_second * 1e-12,
      rates.memory_bytes_per_second * 1e-9,
      rates.link_bytes_per_second * 1e-9,
      rates.network_bytes_per_second * 1e-9,
      rates.host_link_bytes_per_second * 1e-9,
      rates.host_memory_bytes_per_second * 1e-9);
}

schedule::Load expected_load(const config::Config& config, const schedule::TokenFlow& flow) {
  const config::ModelConfig& model = config.model;
  const std::int64_t tokens = config.train.micro_batch_size * model.seq_length /
                              (model.tensor_model_parallel_size * model.context_parallel_size);
  const config::ExpertGrid grid = model.expert_grid();
  schedule::Load load{.tokens = tokens, .rows = tokens * grid.per_token};
  if (model.experts() == 0) return load;
  const auto copies = [&](std::int64_t parts) {
    return static_cast<std::int64_t>(number(tokens) *
                                     derive::copies_of_token(model, grid.ranks, parts));
  };
  const std::int64_t ranks = grid.ranks;
  load.copies = copies(ranks);
  load.passing = copies(flow.machines);
  load.onward = load.copies;
  if (model.moe_pad_expert_input_to_capacity) {
    load.rows = grid.experts * model.expert_capacity(tokens);
  }
  if (schedule::row_counts_of(model, flow.budget) != schedule::RowCounts::Device) return load;
  // Counts the reserved row budget.
  if (!model.moe_pad_expert_input_to_capacity) load.rows = model.row_budget(tokens);
  load.copies = std::min(load.rows, ranks * tokens);
  load.passing = flow.machines * tokens;
  load.onward = load.passing * std::min(grid.per_token, ranks / flow.machines);
  return load;
}

sim::Result simulate_nominal(const config::Config& config,
                             const grid::Grid& grid,
                             const std::vector<schedule::RankPlan>& plans,
                             const NominalRates& rates) {
  return sim::simulate(simulated_step(plans, nominal_costs(config, grid, plans, rates)));
}

sim::CostTable nominal_costs(const config::Config& config,
                             const grid::Grid& grid,
                             const std::vector<schedule::RankPlan>& plans,
                             const NominalRates& rates) {
  sim::CostTable table;
  for (const schedule::RankPlan& plan : plans) {
    const Pricing pricing(config, grid, plan, rates);
    const int rank = plan.anatomy.pp_rank;
    for (const Entry& entry : plan.training.entries) {
      if (table.find(rank, entry.node) == nullptr) {
        table.set(rank, entry.node, pricing.cost(entry));
      }
    }
  }
  return table;
}

}  // namespace weft::plan
