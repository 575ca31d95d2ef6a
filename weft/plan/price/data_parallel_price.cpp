#include "weft/plan/price/data_parallel_price.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/memory.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/plan/hardware/wire_time.h"

namespace weft::plan {
namespace {

using base::number;

// Share of the time of data-parallel collectives that concurrent compute can cover; the rest is
// their start and end.
constexpr double kDataCover = 0.9;
// A fully sharded run gathers weights twice and scatters gradients once per micro-batch.
constexpr double kShardedGathers = 3;

// Exposed time of an exchange under compute.
double uncovered(double seconds, double cover) {
  return std::max((1 - kDataCover) * seconds, seconds - cover);
}

}  // namespace

double host_update_rate(const config::Config& config, const Hardware& hardware) {
  if (hardware.host_core_gbps <= 0) return hardware.host_memory_rate();
  const double world = number(derive::layout_of(config).world);
  const double sharing = std::min(world, hardware.gpus_per_node);
  const double machine = hardware.host_memory_rate() * hardware.gpus_per_node / sharing;
  const double cores = number(config.runtime.threads_per_rank) * hardware.host_core_gbps * 1e9;
  return std::min(machine, cores);
}

DataParallelPrice::DataParallelPrice(const config::Config& config, const Hardware& hardware)
    : DataParallelPrice(config, hardware, derive::rank_parameters(config)) {}

DataParallelPrice::DataParallelPrice(const config::Config& config,
                                     const Hardware& hardware,
                                     const std::vector<derive::RankParameters>& ranks)
    : config_(config), hardware_(hardware), traffic_(derive::optimizer_traffic(config)) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t stage = layout.world / layout.pp;
  std::int64_t dense = 0, experts = 0;
  for (const derive::RankParameters& rank : ranks) {
    dense = std::max(dense, rank.dense);
    experts = std::max(experts, rank.experts);
  }
  const auto replicated = [&](std::int64_t parameters, std::int64_t stride) {
    const std::int64_t replicas = stage / stride;
    const bool shares = is_distributed() || config.ddp.use_megatron_fsdp;
    const std::int64_t sharers = shares ? derive::ranks_of_instance(config, replicas) : replicas;
    return Replicated{.parameters = number(parameters),
                      .replicas = number(replicas),
                      .stride = number(stride),
                      .sharers = number(sharers)};
  };
  replicated_ = {replicated(dense, layout.tp), replicated(experts, layout.ep * layout.etp)};
}

bool DataParallelPrice::is_distributed() const {
  return config_.ddp.use_distributed_optimizer || config_.optimizer.use_distributed_optimizer;
}

double DataParallelPrice::exchange_seconds(double bytes_of_parameter) const {
  double seconds = 0;
  for (const Replicated& each : replicated_) {
    seconds += gather_seconds(each.parameters * bytes_of_parameter,
                              group_of(each.sharers, each.stride, hardware_),
                              hardware_);
  }
  return seconds;
}

double DataParallelPrice::between_seconds(double bytes_of_parameter) const {
  double seconds = 0;
  for (const Replicated& each : replicated_) {
    const double instances = each.replicas / each.sharers;
    if (instances <= 1) continue;
    seconds += 2 * gather_seconds(each.parameters / each.sharers * bytes_of_parameter,
                                  group_of(instances, each.stride * each.sharers, hardware_),
                                  hardware_);
  }
  return seconds;
}

double DataParallelPrice::exposed(double micro_batches, double forward, double backward) const {
  const double gradient = derive::reduced_bytes(config_), weight = derive::gathered_bytes(config_);
  if (config_.ddp.use_megatron_fsdp) {
    const double each = kShardedGathers * exchange_seconds(weight);
    return micro_batches * uncovered(each, forward + backward) + between_seconds(gradient);
  }
  const bool reduces_early = config_.comm_overlap.overlap_grad_reduce.value_or(
      is_distributed() || config_.ddp.overlap_grad_reduce);
  const bool gathers_late = config_.comm_overlap.overlap_param_gather.value_or(
      is_distributed() || config_.ddp.overlap_param_gather);
  const double reduced =
      exchange_seconds(gradient) * (is_distributed() ? 1 : 2) + between_seconds(gradient);
  const double gathered = is_distributed() ? exchange_seconds(weight) : 0;
  return (reduces_early ? uncovered(reduced, backward) : reduced) +
         (gathers_late ? uncovered(gathered, forward) : gathered);
}

double DataParallelPrice::own(const Replicated& each) const {
  return each.parameters / (is_distributed() || config_.ddp.use_megatron_fsdp ? each.sharers : 1);
}

// Time of buckets that are downloaded, updated and uploaded. Sequential, or pipelined: then the
// slowest of the three sets the pace, and the others add one bucket each.
double DataParallelPrice::host_seconds(double parameters) const {
  const derive::OptimizerOffload offload = derive::optimizer_offload(config_);
  const double change = traffic_.host / host_update_rate(config_, hardware_);
  const double there = traffic_.download / hardware_.host_link_rate();
  const double back = traffic_.upload / hardware_.host_link_rate();
  const double all = change + there + back;
  if (offload.order == derive::OffloadOrder::OneByOne) return parameters * all;
  const double slowest = std::max({change, there, back});
  const double bucket = std::min(parameters, number(offload.bucket_size));
  return parameters * slowest + bucket * (all - slowest);
}

OptimizerSeconds DataParallelPrice::optimizer() const {
  const bool fully = config_.ddp.use_megatron_fsdp;
  const double there = derive::optimizer_offload(config_).fraction;
  const double rate = hardware_.memory_rate();
  OptimizerSeconds seconds;
  double beside = 0, offloaded = 0;
  for (const Replicated& each : replicated_) {
    const double mine = own(each), update = mine * (1 - there) * traffic_.device;
    const double passed =
        (fully ? mine : each.parameters) * hardware_.work.gradient_passes * traffic_.gradient;
    seconds.device += (update + passed) / rate;
    beside += update / rate;
    offloaded += mine * there;
  }
  // The device updates the rest meanwhile.
  if (offloaded > 0) seconds.waiting = std::max(0.0, host_seconds(offloaded) - beside);
  return seconds;
}

}  // namespace weft::plan
